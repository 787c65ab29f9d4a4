"""A filter accepts the same items in every kind of index."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adsh
from adsh.hamming.bits import pack
from adsh.index.filters import Filter
from tests.index import stores
from tests.index.cases import keys

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, 2.5, "a", "b", "Ä", "", "1"])
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
comparisons = st.one_of(
    scalars,
    st.builds(lambda test, value: {test: value}, st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]), values),
    st.builds(lambda test, some: {test: some}, st.sampled_from(["in", "not_in"]), st.lists(scalars, max_size=3)),
    st.builds(lambda test, *some: {"all": [some[0], {test: some[1]}]}, st.sampled_from(["eq", "ne"]), scalars, scalars),
)
stored = st.none() | st.dictionaries(st.sampled_from(["x", "y"]), values, max_size=2)


@pytest.mark.parametrize("kind", stores.KINDS)
def test_a_filter_means_the_same_in_every_index(kind, tmp_path_factory):
    with adsh.open_index(stores.place(kind, tmp_path_factory.mktemp("i")).location, bits=8) as index:

        @settings(max_examples=60)
        @given(st.lists(stored, min_size=1, max_size=8), st.dictionaries(st.sampled_from(["x", "y"]), comparisons))
        def holds(metadata, where):
            names = keys(len(metadata))
            index.remove(index.keys())
            index.add(names, pack(np.ones((len(names), 8))), metadata)
            accepts = Filter(where).accepts
            texts = [json.dumps(one) if one is not None else "" for one in metadata]
            right = [name for name, text in zip(names, texts, strict=True) if accepts(text)]
            assert index.search(pack(np.ones((1, 8))), k=3, where=where)[0].keys == right[:3]
            assert index.within(pack(np.ones((1, 8))), 0, where=where)[0].keys == right

        holds()
