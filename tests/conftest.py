"""What every test shares: one thread, repeatable examples, and the digits that scikit-learn ships."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import pytest
import torch
from hypothesis import Phase, settings

settings.register_profile("adsh", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(  # make mutants: that an example fails is enough
    "mutants", settings.get_profile("adsh"), max_examples=40, phases=[Phase.explicit, Phase.generate], database=None
)
settings.load_profile("adsh")
torch.set_num_threads(1)


@dataclass(frozen=True)
class Split:
    database: np.ndarray  # (n, 64)
    labels: np.ndarray  # (n,)
    queries: np.ndarray
    query_labels: np.ndarray


@pytest.fixture(scope="session")
def digits() -> Split:
    """1,597 database points and 200 queries, split at random with a fixed seed."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(pixels))
    queries, database = order[:200], order[200:]
    return Split(pixels[database], labels[database], pixels[queries], labels[queries])


@pytest.fixture
def blobs() -> tuple[np.ndarray, np.ndarray]:
    """300 points of 3 well separated classes in 8 dimensions: enough to fit in a fraction of a second."""
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    centres = rng.normal(size=(3, 8)) * 4
    return centres[labels] + rng.normal(size=(300, 8)), labels


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ray's file comes first, as its processes are forked, which threads of other tests could bring to a halt.

    After it come the files with the most tests, as pytest-xdist orders them unless told not to: see the Makefile.
    """
    count = Counter(item.path for item in items)
    items.sort(key=lambda item: (item.path.name != "test_encode_ray.py", -count[item.path]))
