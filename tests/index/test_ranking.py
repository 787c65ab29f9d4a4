"""Orders finer than the distance in bits: by real-valued outputs, and by vectors inside ties; against plain sorting."""

import numpy as np
import pytest

import adsh
from adsh.hamming.small_vectors import Projection
from tests.index.cases import answer, keys, random_codes
from tests.reference import hamming as plain


@pytest.fixture
def index(tmp_path):
    with adsh.open_index(tmp_path / "index", bits=48) as index:
        yield index


@pytest.mark.parametrize(
    "codes", [random_codes(600, distinct=0), random_codes(600, distinct=7)], ids=["scan", "buckets"]
)
def test_the_asymmetric_ranking_orders_what_hamming_leaves_tied(index, codes):
    rng = np.random.default_rng(0)
    index.add(keys(600), codes)
    outputs = rng.integers(-8, 9, size=(3, 48)) / 8
    for output, matches in zip(outputs, index.search(outputs, k=40, ranking="asymmetric"), strict=True):
        far = plain.asymmetric(output, codes, 48)
        best = plain.top(far, 40)
        assert answer(matches) == ([f"item {i}" for i in best], far[best].tolist())


def test_reranking_orders_ties_by_the_vectors_and_nothing_else(index):
    rng = np.random.default_rng(0)
    codes = random_codes(700, distinct=4)
    features = rng.normal(size=(700, 10))
    index.add(keys(500), codes[:500], vectors=features[:500])
    index.compact()
    index.add(keys(150, 500), codes[500:650], vectors=features[500:650])
    index.add(keys(50, 650), codes[650:])  # without vectors: last of their tie
    query = rng.normal(size=(1, 10))
    got = index.search(codes[:1], k=300, vectors=query, rerank=True)[0]
    project = Projection.fit(features[:500].astype(np.float32))
    near = ((project(features).astype(int) - project(query).astype(int)) ** 2).sum(axis=1)
    near[650:] = near.max() + 1
    far = plain.distances(codes[0], codes, 48)
    best = np.lexsort((near, far))[:300]
    assert answer(got) == ([f"item {i}" for i in best], far[best].tolist())
    best = index.search(codes[:1], k=5, vectors=query, rerank=True)[0].keys
    assert best == got.keys[:5]
    reopened = adsh.open_index(index.folder)
    assert reopened.search(codes[:1], k=300, vectors=query, rerank=True)[0].keys == got.keys
    assert reopened.info()["vector_dimensions"] == 10
    assert reopened.verify() == []
    reopened.close()


def test_reranking_goes_with_filters_and_with_the_asymmetric_ranking(index):
    rng = np.random.default_rng(0)
    codes, features = random_codes(400, distinct=6), rng.normal(size=(400, 8))
    index.add(keys(400), codes, [{"odd": i % 2} for i in range(400)], vectors=features)
    query, outputs = rng.normal(size=(1, 8)), rng.integers(-8, 9, size=(1, 48)) / 8
    project = Projection.fit(features.astype(np.float32))
    near = ((project(features).astype(int) - project(query).astype(int)) ** 2).sum(axis=1)
    far = plain.asymmetric(outputs[0], codes, 48)
    best = [i for i in np.lexsort((near, far)) if i % 2][:50]
    found = index.search(outputs, k=50, ranking="asymmetric", vectors=query, rerank=True, where={"odd": 1})[0]
    assert answer(found) == ([f"item {i}" for i in best], far[best].tolist())


def test_a_search_from_an_item_is_ordered_by_its_own_vector(tmp_path):
    rng = np.random.default_rng(4)
    features = rng.normal(size=(300, 16))
    keys = [str(at) for at in range(300)]
    with adsh.open_index(tmp_path / "index", bits=8) as index:
        index.add(keys, np.zeros((300, 1), dtype=np.uint8), vectors=features)
        index.add(["bare"], np.zeros((1, 1), dtype=np.uint8))
        code = np.zeros((2, 1), dtype=np.uint8)
        by_key = index.search(code, 10, vectors=index.stored_vectors(["7", "3"]), rerank=True)
        by_features = index.search(code, 10, vectors=features[[7, 3]], rerank=True)
        assert [found.keys for found in by_key] == [found.keys for found in by_features]
        assert [found.keys[0] for found in by_key] == ["7", "3"]
        for missing in (["bare"], ["nobody"], ["7", "bare"]):
            assert index.stored_vectors(missing) is None
        with pytest.raises(adsh.AdshError, match="give one of each"):
            index.search(code, 10, vectors=index.stored_vectors(["7"]), rerank=True)
