"""A first result from the installed package: learn codes of three classes, save, load, and find a class by code."""

import tempfile

import numpy as np

import adsh

rng = np.random.default_rng(0)
labels = np.repeat(["ant", "bee", "cat"], 200)
centres = {name: rng.normal(size=16) * 3 for name in ("ant", "bee", "cat")}
features = np.stack([centres[name] + rng.normal(size=16) for name in labels])

np.savez("blobs.npz", features=features, labels=labels)  # for the command line, next
with tempfile.TemporaryDirectory() as folder:
    adsh.ADSH(12, outer=10).fit(features, labels, save_to=f"{folder}/model")
    model = adsh.load(f"{folder}/model")

for name, centre in centres.items():
    code = model.encode(centre[None])
    distance = np.bitwise_count(model.database_codes_ ^ code).sum(axis=1)
    nearest = labels[np.argsort(distance, kind="stable")[:200]]
    assert (nearest == name).mean() > 0.95, (name, nearest)
print(f"adsh {adsh.__version__} from {adsh.__file__.rsplit('/', 3)[1]}: 3 of 3 classes found, 600 codes of 12 bits")
