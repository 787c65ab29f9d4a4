"""A database that grows: items come in day by day and go again, and nothing is trained anew.

The model is trained once, on what is there on the first day. From then on the network codes what comes, and the index
takes it: durable when `add` returns, found by the next search, also by other processes that have the index open.
"""

# %%
# Handwritten digits as they come: 600 on the first day, 200 on each of the days after, 97 kept to ask with.
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
    """What items are called in the index."""
    return [f"digit {item}" for item in items]


# %%
# The first day: train, and put in what was learned.
first = arrivals[0]
model = adsh.ADSH(bits=24, network="mlp", outer=15).fit(pixels[first], digit[first], save_to=folder / "model")
with adsh.open_index(folder / "index", bits=24, model=model) as index:
    index.add(keys_of(first), model.database_codes_, [{"day": 0}] * len(first))

# %%
# Every day after: code what came and add it. A reader that stays open sees each addition.
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
# What is old goes: `remove` says how many were there. An item under a known key is replaced.
with adsh.open_index(folder / "index") as index:
    print(f"{index.remove(keys_of(first)):,} of the first day are taken out, {len(index):,} are left")
    index.add(["digit 700"], model.code_for([digit[700]]), [{"day": 1, "checked": True}])  # by its label, not its looks
    print(f"still {len(index):,}, and digit 700 is now {index.get(['digit 700'])[0].metadata}")
    index.compact()
reader.close()
