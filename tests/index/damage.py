"""A small index as a killed process leaves it, and everything that it says."""

from __future__ import annotations

import shutil
import warnings

import numpy as np

import adsh
from adsh.hamming.bits import unpack
from tests.index.cases import keys, random_codes


def contents(index):
    """Everything an index says."""
    query = random_codes(1, distinct=1)
    found = index.search(query, k=100)[0]
    near = index.within(query, radius=20)[0]
    again = index.search(unpack(query, 48).astype(float), k=100, ranking="asymmetric")[0]
    reranked = index.search(query, k=100, vectors=np.ones((1, 3)), rerank=True)[0]
    return [
        len(index),
        list(index.items()),
        *((m.keys, m.distances.tolist(), m.metadata) for m in (found, near, again, reranked)),
    ]


def killed_index(folder):
    """A folder with a snapshot, a log not yet folded in, removed and replaced items; and its contents."""
    index = adsh.open_index(folder / "index", bits=48)
    codes = random_codes(60, distinct=5)
    vectors = np.random.default_rng(0).normal(size=(60, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", adsh.AdshWarning)  # few vectors
        index.add(keys(40), codes[:40], [{"n": i} for i in range(40)], vectors=vectors[:40])
    index.compact()
    index._store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    index.remove(keys(3))
    index.add(keys(20, 40), codes[40:], vectors=vectors[40:])
    index.add(keys(2, 5), codes[:2])
    right = contents(index)
    shutil.copytree(folder / "index", folder / "killed")
    index.close()
    return folder / "killed", right


def opened_contents(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", adsh.AdshWarning)  # a snapshot is rebuilt
        with adsh.open_index(folder) as index:
            return contents(index)
