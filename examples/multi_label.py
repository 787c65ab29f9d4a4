"""Several labels per item: items are similar if they share at least one.

Each image here shows two handwritten digits side by side, and is tagged with both: one of 3 and 8 is similar to one
of 3 and 5, and not to one of 0 and 2. Real ones would be photographs tagged "dog", "outdoor", "snow".
"""

# %%
# 1,500 pairs of digits (pixels of both), and their tags. The last one has no tags.
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import adsh
from adsh import metrics

pixels, digit = load_digits(return_X_y=True)
pixels, digit = pixels[digit < 6], digit[digit < 6]  # six tags are enough to see it
rng = np.random.default_rng(0)
left, right = rng.integers(len(pixels), size=(2, 1500))
pairs = np.hstack([pixels[left], pixels[right]])  # (1500, 128)
tags = [sorted({str(digit[a]), str(digit[b])}) for a, b in zip(left, right, strict=True)]
tags[-1] = []  # an untagged item: the network encodes it after training

# %%
# Train on all but the first 200, which are the queries.
model = adsh.ADSH(bits=32, network="mlp", outer=15).fit(pairs[200:], tags[200:])
print(
    f"{len(tags) - 200} items, {len(set(map(tuple, tags)))} sets of tags, {len(model.code_table_.rows)} distinct codes"
)

# %%
# Evaluate. An item is relevant if it shares a tag with the query; NDCG takes the number of shared tags into account.
table = np.array([[str(tag) in one for tag in range(6)] for one in tags], dtype=int)  # (n, 6), of 0 and 1
evaluated = model.encode(pairs[:200]), model.database_codes_, table[:200], table[200:]
by_chance = (table[:200] @ table[200:].T > 0).mean()
print(f"MAP {metrics.mean_average_precision(*evaluated, bits=32, k=100):.3f}, where {by_chance:.3f} is chance")
print(f"NDCG {metrics.ndcg_at(*evaluated, bits=32, k=100):.3f}")

# %%
# Search by tags alone: `code_for` returns the code that training would give an item with these tags.
with adsh.open_index(Path(tempfile.mkdtemp(), "pairs.index"), bits=32, create=True) as index:
    index.add([f"pair {at}" for at in range(200, 1500)], model.database_codes_, [{"tags": one} for one in tags[200:]])
    for query_tags in (["2", "5"], ["0"]):
        near = index.search(model.code_for([query_tags]), k=5)[0]
        print(f"tagged {query_tags}: {[match.metadata['tags'] for match in near]}")

    # any search takes a filter on metadata: here, items that are also tagged "4"
    near = index.search(model.encode(pairs[:1]), k=3, where={"tags": "4"})[0]
    print(f"like {tags[0]}, and tagged 4: {[match.metadata['tags'] for match in near]}")
