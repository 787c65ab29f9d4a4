"""Any sequence of calls against a dictionary: what a careful user believes an index to be."""

import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import adsh
from adsh.hamming.bits import pack
from tests.index import stores
from tests.reference import hamming as plain

names = st.lists(st.sampled_from([f"key {i}" for i in range(12)] + ["ключ", "a/b.jpg"]), unique=True, max_size=8)
seeds = st.integers(0, 5)  # few: codes repeat


class AgainstADictionary(RuleBasedStateMachine):
    kind, vectors = "embedded", True

    @initialize(bits=st.sampled_from([3, 12, 48, 70]))
    def open(self, bits):
        self.bits, self.model = bits, {}
        self.folder = Path(tempfile.mkdtemp())
        self.location = stores.place(self.kind, self.folder).location
        self.handles = [adsh.open_index(self.location, bits=bits), adsh.open_index(self.location)]

    def codes(self, seed, n):
        return pack(np.random.default_rng(seed).choice([-1, 1], size=(n, self.bits)))

    @rule(keys=names, seed=seeds, metadata=st.booleans(), vectors=st.booleans(), handle=st.integers(0, 1))
    def add(self, keys, seed, metadata, vectors, handle):
        codes = self.codes(seed, len(keys))
        stored = [{"seed": seed}] * len(keys) if metadata else None
        features = np.random.default_rng(seed).normal(size=(len(keys), 6)) if vectors and self.vectors else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", adsh.AdshWarning)  # few vectors to decide by
            new = self.handles[handle].add(keys, codes, stored, vectors=features)
        assert new == len(set(keys) - set(self.model))
        self.model |= {key: (code, {"seed": seed} if metadata else None) for key, code in zip(keys, codes, strict=True)}

    @rule(keys=names, handle=st.integers(0, 1))
    def remove(self, keys, handle):
        assert self.handles[handle].remove(keys) == len(set(keys) & set(self.model))
        for key in keys:
            self.model.pop(key, None)

    @rule(handle=st.integers(0, 1))
    def clear(self, handle):
        assert self.handles[handle].remove(list(self.model)) == len(self.model)
        self.model.clear()

    @rule(handle=st.integers(0, 1))
    def compact(self, handle):
        self.handles[handle].compact()

    @rule(handle=st.integers(0, 1))
    def reopen(self, handle):
        self.handles[handle].close()
        self.handles[handle] = adsh.open_index(self.location)

    @rule(seed=seeds, k=st.integers(1, 20), handle=st.integers(0, 1), only=st.none() | seeds)
    def search(self, seed, k, handle, only):
        query = self.codes(seed, 1)
        where = None if only is None else {"seed": only}
        candidates = [key for key, (_, m) in self.model.items() if only is None or (m or {}).get("seed") == only]
        far = self.far(query, candidates)
        found = self.handles[handle].search(query, k=k, where=where)[0]
        best = plain.top(far, k)
        assert found.keys == [candidates[i] for i in best]
        assert found.distances.tolist() == far[best].tolist()
        assert found.metadata == [self.model[key][1] for key in found.keys]

    @rule(seed=seeds, radius=st.integers(0, 10), handle=st.integers(0, 1))
    def within(self, seed, radius, handle):
        query, candidates = self.codes(seed, 1), list(self.model)
        found = self.handles[handle].within(query, radius=radius)[0]
        assert found.keys == [candidates[i] for i in plain.within(self.far(query, candidates), radius)]

    @invariant()
    def holds_what_the_dictionary_does(self):
        for handle in getattr(self, "handles", []):
            assert len(handle) == len(self.model)
            assert handle.verify() == []
            assert [(key, code) for key, code, _ in handle.items()] == [
                (k, c.tobytes()) for k, (c, _) in self.model.items()
            ]

    def far(self, query, candidates):
        if not candidates:
            return np.zeros(0, dtype=int)
        return plain.distances(query[0], np.stack([self.model[key][0] for key in candidates]), self.bits)

    def teardown(self):
        for handle in getattr(self, "handles", []):
            handle.close()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


TestAgainstADictionary = AgainstADictionary.TestCase
TestAgainstADictionary.settings = settings(max_examples=15, stateful_step_count=30, deadline=None, derandomize=True)


@pytest.mark.slow
class TestLongAgainstADictionary(AgainstADictionary.TestCase):
    settings = settings(max_examples=100, stateful_step_count=30, deadline=None, derandomize=True)


class PostgresAgainstADictionary(AgainstADictionary):
    kind = "postgres"


class MilvusAgainstADictionary(AgainstADictionary):
    kind, vectors = "milvus", False


TestMilvusAgainstADictionary = MilvusAgainstADictionary.TestCase
TestMilvusAgainstADictionary.settings = settings(
    max_examples=4, stateful_step_count=15, deadline=None, derandomize=True
)
TestPostgresAgainstADictionary = PostgresAgainstADictionary.TestCase
TestPostgresAgainstADictionary.settings = settings(
    max_examples=10, stateful_step_count=20, deadline=None, derandomize=True
)
