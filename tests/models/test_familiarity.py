"""A model says how familiar items look: with features, on a frozen network, on images, after saving and updating."""

import numpy as np
import pytest

import adsh
from adsh.errors import InputError

from .test_update import clouds, fitted


def test_items_of_a_class_that_was_not_trained_are_unfamiliar_until_it_is(tmp_path):
    X, labels = clouds(6, 60, seed=1)
    queries, truth = clouds(6, 20, seed=9)
    model = fitted(X[labels < 4], labels[labels < 4], "posterior")
    model.save(tmp_path / "model")
    model = adsh.load(tmp_path / "model")
    before = model.familiarity(queries)
    assert np.median(before[truth >= 4]) < 0.02 < 0.2 < np.median(before[truth < 4])
    model.update(X[labels >= 4], labels[labels >= 4])
    after = model.familiarity(queries)
    assert np.median(after[truth >= 4]) > 0.1
    model.save(tmp_path / "updated")
    assert np.array_equal(adsh.load(tmp_path / "updated").familiarity(queries), after)


@pytest.mark.parametrize("network", ["tiny", "frozen:tiny"])
def test_images_are_compared_by_features(network):
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(4), 40)
    colours = rng.integers(0, 256, (4, 1, 1, 3))
    images = np.clip(colours[labels] + rng.integers(-20, 21, (160, 16, 16, 3)), 0, 255).astype(np.uint8)
    model = adsh.ADSH(16, network=network, outer=4, device="cpu", progress=False).fit(images[:120], labels[:120])
    found = model.familiarity(images)
    assert np.median(found[:120]) > 0.2
    assert np.median(found[120:]) < np.median(found[:120])


def test_without_labels_nothing_is_familiar(blobs):
    X, labels = blobs
    S = np.where(labels[:, None] == labels[None], 1, -1)
    model = adsh.ADSH(8, network="linear", outer=1, device="cpu", progress=False).fit(X, similarity=S)
    with pytest.raises(InputError, match="does not know what is familiar"):
        model.familiarity(X)
