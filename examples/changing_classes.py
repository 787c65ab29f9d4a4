"""A collection whose classes change: new ones come, two are merged, a label was wrong; nothing is trained anew.

The model is trained once, on eight of ten classes. Each update learns the codes of what is new and lets the network
follow. The codes of all other items stay as they are, bit for bit, and so does the index of them.
"""

# %%
# Handwritten digits without eights and nines, and queries of all ten classes.
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import adsh

pixels, digit = load_digits(return_X_y=True)
queries, query_digits, pixels, digit = pixels[:197], digit[:197], pixels[197:], digit[197:]
old, new = np.flatnonzero(digit < 8), np.flatnonzero(digit >= 8)
folder = Path(tempfile.mkdtemp(prefix="adsh-changes-"))
labels = [f"digit {one}" for one in digit]


def right(model: adsh.ADSH) -> str:
    """Say how many of the ten nearest items have the class of the query."""
    found = index.search(model.encode(queries), k=10)
    same = [item["class"] == f"digit {query_digits[at]}" for at, near in enumerate(found) for item in near.metadata]
    return f"{np.mean(same):.0%} of the ten nearest are right"


# %%
# The first classes: a model, and an index of its database.
model = adsh.ADSH(bits=24, network="mlp", outer=20, keep=50)
model.fit(pixels[old], [labels[i] for i in old], save_to=folder / "model")
index = adsh.open_index(folder / "index", bits=24, model=model)
index.add([f"item {i}" for i in old], model.database_codes_, [{"class": labels[i]} for i in old])
print(f"8 classes: {right(model)}")

# %%
# Two classes more. The network has seen 50 old items of each class again, which the model keeps.
before = model.database_codes_
model.update(pixels[new], [labels[i] for i in new])
print(f"codes that changed: {int((model.database_codes_[: len(old)] != before).sum())}")
index.accept_model(model)  # refuses a model that does not descend from the first
index.add([f"item {i}" for i in new], model.database_codes_[len(old) :], [{"class": labels[i]} for i in new])
print(f"10 classes: {right(model)}")

# %%
# A label was wrong: position 0 of the database is a one. And fives and sixes become one class.
model.update(changes=adsh.Changes(relabel={0: "digit 1"}, rename={"digit 6": "digit 5"}), old=None, outer=5)
print(f"{len(model.known_labels)} classes are left: {', '.join(model.known_labels)}")
index.change_metadata([item.key for item in index.page(2000, where={"class": "digit 6"}).items], {"class": "digit 5"})
print(f"{index.count({'class': 'digit 5'})} items are fives or sixes now")
index.close()
