"""A database that grows: items are added and removed day by day, without retraining.

The model is trained once, on the items of the first day. From then on the network encodes new items, and they are added
to the index: durable when `add` returns, and visible to the next search, also of other processes.
"""

# %%
# Handwritten digits: 600 on the first day, 200 on each of the following days, and 97 queries.
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import adsh

pixels, digit = load_digits(return_X_y=True)
queries, query_digits = pixels[:97], digit[:97]
arrivals = {0: np.arange(97, 697)} | {day: np.arange(497, 697) + 200 * day for day in range(1, 6)}
folder = Path(tempfile.mkdtemp(prefix="adsh-grows-"))


def keys_of(items: np.ndarray) -> list[str]:
    """The keys of items in the index."""
    return [f"digit {item}" for item in items]


# %%
# The first day: train, and add the learned codes.
first = arrivals[0]
model = adsh.ADSH(bits=24, network="mlp", outer=15).fit(pixels[first], digit[first], save_to=folder / "model")
with adsh.open_index(folder / "index", bits=24, model=model, create=True) as index:
    index.add(keys_of(first), model.database_codes_, [{"day": 0}] * len(first))

# %%
# Every day after: encode the new items and add them. A reader that stays open sees each addition.
reader = adsh.open_index(folder / "index")
model = adsh.load(folder / "model")  # as on another day, in another process
for day in range(1, 6):
    new = arrivals[day]
    with adsh.open_index(folder / "index", model=model) as index:  # refuses codes of another model
        index.add(keys_of(new), model.encode(pixels[new]), [{"day": day}] * len(new))
    found = reader.search(model.encode(queries), k=10, where={"day": day})
    right = [digit[int(key.split()[1])] == query_digits[at] for at, near in enumerate(found) for key in near.keys]
    print(f"day {day}: {len(reader):,} items; of the day's own, {np.mean(right):.0%} found are right")

# %%
# Delete old items: `remove` returns how many there were. Adding an existing key replaces its item.
with adsh.open_index(folder / "index") as index:
    print(f"{index.remove(keys_of(first)):,} of the first day are removed, {len(index):,} are left")
    index.add(["digit 700"], model.code_for([digit[700]]), [{"day": 1, "checked": True}])  # by its label
    print(f"still {len(index):,}, and digit 700 is now {index.get(['digit 700'])[0].metadata}")
    index.compact()
reader.close()
