"""Every kind of index gives the same answers: those of plain sorting."""

import json

import numpy as np
import pytest

import adsh
from adsh.errors import InputError
from adsh.hamming.small_vectors import Projection
from adsh.index.matches import StoredVectors
from adsh.index.rows import SAMPLE_BYTES
from tests.index.cases import keys, random_codes
from tests.reference import hamming as plain


@pytest.fixture
def index(place):
    with adsh.open_index(place.location, bits=48) as index:
        yield index


@pytest.fixture(params=[0, 7], ids=["distinct", "few"])
def codes(request):
    return random_codes(400, distinct=request.param)


def answer(matches):
    return matches.keys, matches.distances.tolist()


def expected(far, best, names=None):
    return [names[i] if names else f"item {i}" for i in best], far[best].tolist()


def test_the_nearest_are_those_of_plain_sorting_with_ties_in_insertion_order(index, codes):
    assert index.add(keys(250), codes[:250], [{"number": i} for i in range(250)]) == 250
    assert index.add(keys(150, 250), codes[250:]) == 150
    for query, matches in zip(codes[:4], index.search(codes[:4], k=57), strict=True):
        far = plain.distances(query, codes, 48)
        best = plain.top(far, 57)
        assert answer(matches) == expected(far, best)
        assert matches.distances.dtype == np.int64
        assert matches.metadata == [{"number": i} if i < 250 else None for i in best.tolist()]
        assert (matches.codes == codes[best]).all()
    first = next(iter(index.search(codes[:1], k=1)[0]))
    assert first == ("item 0", 0, {"number": 0})


def test_all_within_a_radius_are_found_and_pages_put_together_are_the_whole(index, codes):
    index.add(keys(400), codes)
    far = plain.distances(codes[3], codes, 48)
    for radius in (0, 2, 20, 48):
        assert answer(index.within(codes[3:4], radius=radius)[0]) == expected(far, plain.within(far, radius))
    near = index.within(codes[3:4], radius=24)[0].keys
    pages = [index.within(codes[3:4], radius=24, offset=at, limit=33)[0].keys for at in range(0, len(near) + 33, 33)]
    assert [key for page in pages for key in page] == near
    whole = index.search(codes[3:4], k=400)[0].keys
    pages = [index.search(codes[3:4], k=90, offset=at)[0].keys for at in range(0, 500, 90)]
    assert [key for page in pages for key in page] == whole


def test_a_replaced_item_keeps_its_place_and_a_removed_one_comes_back_last(index):
    same = np.zeros((3, 6), dtype=np.uint8)
    index.add(["a", "b", "c"], same, [{"v": 1}] * 3)
    assert index.add(["a", "d"], same[:2], [{"v": 2}, None]) == 1
    assert index.search(same[:1])[0].keys == ["a", "b", "c", "d"]
    assert index.search(same[:1])[0].metadata == [{"v": 2}, {"v": 1}, {"v": 1}, None]
    assert index.add(["b"], ~same[:1]) == 0  # to another code
    assert index.search(same[:1])[0].keys == ["a", "c", "d", "b"]
    assert index.remove(["a", "nobody"]) == 1
    assert index.remove(["nobody"]) == index.remove([]) == 0
    assert "a" not in index
    assert "c" in index
    assert index.add(["a"], same[:1]) == 1
    assert index.search(same[:1])[0].keys == ["c", "d", "a", "b"]
    assert index.keys() == ["b", "c", "d", "a"]
    index.compact()
    assert index.info()["distinct_codes"] in (2, None)
    assert len(index) == 4
    assert index.verify() == []


def test_k_larger_than_the_index_gives_everything_and_an_empty_one_nothing(index):
    assert index.search(random_codes(2), k=5)[1].keys == []
    assert index.within(random_codes(1), radius=5)[0].metadata == []
    assert index.search(np.zeros((0, 6), np.uint8)) == []
    assert index.add([], np.zeros((0, 6), np.uint8)) == 0
    assert list(index.items()) == index.keys() == []
    index.add(["a", "b"], random_codes(2))
    assert len(index.search(random_codes(1), k=1000)[0]) == 2
    assert len(index.search(random_codes(1), k=5, offset=9)[0]) == 0
    index.remove(["a", "b"])
    assert len(index) == 0
    assert index.search(random_codes(1))[0].keys == []
    assert index.verify() == []
    assert index.info()["items"] == 0


@pytest.mark.parametrize("bits", [1, 12, 64, 100, 1024])
def test_codes_of_any_length_are_searched(place, bits):
    codes = random_codes(100, bits, distinct=30)
    with adsh.open_index(place.location, bits=bits) as index:
        index.add(keys(100), codes)
        index.remove(["item 3"])
        far = plain.distances(codes[0], codes, bits)
        best = [i for i in plain.top(far, 100) if i != 3]
        assert index.search(codes[:1], k=100)[0].keys == [f"item {i}" for i in best]
        assert index.within(codes[:1], radius=1)[0].keys == [f"item {i}" for i in best if far[i] <= 1]
        assert index.get(["item 5"])[0].code == codes[5].tobytes()


@pytest.mark.parametrize(
    ("where", "right"),
    [
        ({"class": "cat"}, lambda m: m["class"] == "cat"),
        ({"year": {"ge": 2000, "lt": 2004}}, lambda m: 2000 <= m["year"] < 2004),
        ({"class": {"in": ["cat", "dog"]}, "year": {"gt": 2005}}, lambda m: m["class"] != "cow" and m["year"] > 2005),
        ({"class": {"ne": "cat"}}, lambda m: m["class"] != "cat"),
        ({"class": {"gt": "cat", "le": "dog"}}, lambda m: m["class"] in ("cow", "dog")),
        ({"rare": True}, lambda m: m.get("rare") is True),
        ({"rare": 1}, lambda m: False),
        ({"year": {"le": "2000"}}, lambda m: False),
        ({"nothing": None}, lambda m: False),
    ],
)
def test_filters_are_exact_and_k_are_found_after_them(index, codes, where, right):
    metadata = [{"class": ["cat", "dog", "cow"][i % 3], "year": 1998 + i % 11} for i in range(400)]
    metadata[399]["rare"] = True
    index.add(keys(400), codes, metadata)
    index.add(["bare"], codes[:1])
    far = plain.distances(codes[0], codes, 48)
    best = [i for i in plain.top(far, 400) if right(metadata[i])]
    assert index.search(codes[:1], k=20, where=where)[0].keys == [f"item {i}" for i in best[:20]]
    assert index.search(codes[:1], k=3, offset=4, where=where)[0].keys == [f"item {i}" for i in best[4:7]]
    near = [i for i in best if far[i] <= 20]
    assert index.within(codes[:1], radius=20, where=where)[0].keys == [f"item {i}" for i in near]
    assert index.within(codes[:1], radius=20, where=where, limit=2)[0].keys == [f"item {i}" for i in near[:2]]


def test_the_asymmetric_ranking_is_that_of_plain_sorting_or_refused_in_words(place, index, codes):
    index.add(keys(400), codes, [{"odd": i % 2} for i in range(400)])
    outputs = np.random.default_rng(0).integers(-8, 9, size=(3, 48)) / 8
    if not place.asymmetric:
        with pytest.raises(InputError, match="asymmetric.*copy"):
            index.search(outputs, ranking="asymmetric")
        return
    for output, matches in zip(outputs, index.search(outputs, k=40, ranking="asymmetric"), strict=True):
        far = plain.asymmetric(output, codes, 48)
        assert answer(matches) == expected(far, plain.top(far, 40))
    odd = [i for i in plain.top(far, 400) if i % 2][:30]
    assert index.search(outputs, k=30, ranking="asymmetric", where={"odd": 1})[2].keys == [f"item {i}" for i in odd]


def test_reranking_orders_ties_by_the_vectors_and_nothing_else_or_is_refused_in_words(place, index):
    rng = np.random.default_rng(0)
    codes, features = random_codes(500, distinct=4), rng.normal(size=(500, 10))
    if not place.vectors:
        with pytest.raises(InputError, match="keeps no vectors"):
            index.add(keys(300), codes[:300], vectors=features[:300])
        with pytest.raises(InputError, match="keeps no vectors"):
            index.search(codes[:1], vectors=features[:1], rerank=True)
        assert len(index) == 0
        assert not index.has_vectors
        return
    with pytest.raises(InputError, match="holds no vectors"):
        index.search(codes[:1], vectors=features[:1], rerank=True)
    index.add(keys(300), codes[:300], vectors=features[:300])
    index.add(keys(150, 300), codes[300:450], [{"odd": i % 2} for i in range(150)], vectors=features[300:450])
    index.add(keys(50, 450), codes[450:])  # without vectors: last of their tie
    query = rng.normal(size=(1, 10))
    project = Projection.fit(features[:300].astype(np.float32))
    near = ((project(features).astype(int) - project(query).astype(int)) ** 2).sum(axis=1)
    near[450:] = near.max() + 1
    far = plain.distances(codes[0], codes, 48)
    best = np.lexsort((near, far))
    got = index.search(codes[:1], k=300, vectors=query, rerank=True)[0]
    assert answer(got) == expected(far, best[:300])
    assert index.search(codes[:1], k=5, offset=2, vectors=query, rerank=True)[0].keys == got.keys[2:7]
    odd = [f"item {i}" for i in best if 300 <= i < 450 and i % 2]
    assert index.search(codes[:1], k=9, vectors=query, rerank=True, where={"odd": 1})[0].keys == odd[:9]
    outputs = rng.integers(-8, 9, size=(1, 48)) / 8
    far = plain.asymmetric(outputs[0], codes, 48)
    found = index.search(outputs, k=50, ranking="asymmetric", vectors=query, rerank=True)[0]
    assert answer(found) == expected(far, np.lexsort((near, far))[:50])
    small = index.stored_vectors(["item 7", "item 2"])
    assert (small.small == project(features[[7, 2]])).all()
    assert index.stored_vectors(["item 7", "item 470"]) is None
    assert index.search(codes[7:8], k=1, vectors=StoredVectors(small.small[:1]), rerank=True)[0].keys == ["item 7"]
    assert index.has_vectors
    assert index.info()["vector_dimensions"] == 10
    assert index.verify() == []


def test_what_was_added_and_removed_is_there_after_opening_again(place, codes):
    with adsh.open_index(place.location, bits=48, model="a model") as index:
        index.add(keys(400), codes)
        index.remove(keys(10, 10))
        index.set_note("model", "over there")
        index.note("old name", "of the same method")
    kept = [i for i in range(400) if not 10 <= i < 20]
    with adsh.open_index(place.location) as index:
        assert len(index) == 390
        assert index.bits == 48
        assert index.model == "a model"
        assert index.get_note("model") == "over there"
        assert index.get_note("nothing") is None
        assert index.noted("old name") == "of the same method"
        far = plain.distances(codes[0], codes[kept], 48)
        assert answer(index.search(codes[:1], k=200)[0]) == expected(
            far, plain.top(far, 200), [f"item {i}" for i in kept]
        )
        assert [(key, code) for key, code, _ in index.items()] == [(f"item {i}", codes[i].tobytes()) for i in kept]
        assert index.verify() == []


def test_a_sample_is_of_items_that_are_there(index, codes):
    assert index.sample(5) == []
    index.add(keys(400), codes)
    for count in (1, 5, 50, 1000):
        some = index.sample(count)
        assert 1 <= len(some) <= count
        assert index.get([item.key for item in some]) == some


def test_a_sample_of_items_with_long_metadata_is_small(index):
    text = "x" * 60_000
    for start in range(0, 400, 100):
        names = [str(at) for at in range(start, start + 100)]
        index.add(names, random_codes(4).repeat(25, axis=0), [{"text": text}] * 100)
    for some in (index.sample(400), index.first(400)):
        assert 0 < sum(len(item.metadata["text"]) for item in some) <= 2 * SAMPLE_BYTES + 256 * len(text)
        assert len(some) < 400
    assert len(index.sample(10)) in range(1, 11)
    assert [item.key for item in index.first(3)] == ["0", "1", "2"]


def test_one_handle_sees_what_another_did(place):
    codes = random_codes(50)
    with adsh.open_index(place.location, bits=48) as one, adsh.open_index(place.location) as other:
        one.add(keys(50), codes)
        assert len(other) == 50
        other.remove(keys(10))
        assert one.search(codes[:1], k=100)[0].keys[0] != "item 0"
        assert len(one) == 40


@pytest.mark.parametrize(
    ("opened", "said"),
    [
        ({"bits": 64}, "bits=64, but .* holds codes of 48 bits"),
        ({"bits": 0}, "bits=0"),
        ({"model": "another"}, "codes of model one, not of another"),
    ],
)
def test_other_bits_and_another_model_are_refused(place, opened, said):
    with adsh.open_index(place.location, bits=48, model="one") as index:
        index.add(["a"], random_codes(1))
    with pytest.raises(InputError, match=said) as problem:
        adsh.open_index(place.location, **opened)
    assert "\n" not in str(problem.value)
    with adsh.open_index(place.location, model="one") as index:
        assert index.keys() == ["a"]


def test_codes_of_an_unknown_model_are_not_claimed_by_one(place):
    with adsh.open_index(place.location, bits=48) as index:
        index.add(["a"], random_codes(1))
    with pytest.raises(InputError, match="holds 1 codes of a model that was not recorded"):
        adsh.open_index(place.location, model="one")
    with adsh.open_index(place.location) as index:
        index.remove(["a"])
    with adsh.open_index(place.location, model="one") as index:
        assert index.model == "one"


def test_a_place_without_an_index_needs_the_bits(place):
    with pytest.raises(InputError, match="give bits= to create one"):
        adsh.open_index(place.location)


ODD_KEYS = [
    "ключ", "a/b.jpg", "it's", 'say "x"', "back\\slash", "tab\there", "new\nline", "🐈", "%s %(x)s", "a b", "A", "a",
    "[x]", "{y}", "\u00e9", "e\u0301", "null", "\\N", "k" * 2000,
]  # fmt: skip


def test_any_text_is_a_key_and_any_json_is_metadata(index):
    metadata = [
        {}, None, {"a": None}, {"a": [1, 2.5, True, None, "x"]}, {"a": {"b": {"c": []}}}, {"ключ": "значение 🐈"},
        {"big": 2**53, "small": -1.5e-7, "zero": 0, "one": 1.0}, {"quote": "it's \"x\" \\ \t\n %s"}, {"": "empty name"},
        {"no": False, "yes": True}, *[{"n": i} for i in range(len(ODD_KEYS) - 10)],
    ]  # fmt: skip
    codes = random_codes(len(ODD_KEYS), distinct=3)
    index.add(ODD_KEYS, codes, metadata)
    for key, stored, item in zip(ODD_KEYS, metadata, index.get(ODD_KEYS), strict=True):
        assert item.key == key
        assert json.dumps(item.metadata, sort_keys=True) == json.dumps(stored, sort_keys=True)
        assert key in index
    assert index.keys() == ODD_KEYS
    assert [item.metadata for item in index.items()] == metadata
    assert index.get(["nobody", "🐈"])[0] is None
    assert index.search(codes[:1], where={"ключ": "значение 🐈"})[0].keys == [ODD_KEYS[5]]
    assert index.remove(ODD_KEYS) == len(ODD_KEYS)
    assert len(index) == 0


def test_numbers_come_back_as_they_were(index):
    stored = [{"f": 1e30, "text": '1e30 "2E5" \\'}, {"f": -2.5e-7}, {"f": [1e16, 3, 2.0]}, {"f": 10**20}]
    index.add(keys(4), random_codes(4), stored)
    found = [item.metadata for item in index.items()]
    assert json.dumps(found) == json.dumps(stored)
    for value, key in ((1e30, "item 0"), (-2.5e-7, "item 1"), (10**20, "item 3")):
        assert index.search(random_codes(1), where={"f": value})[0].keys == [key]


def test_a_big_batch_is_stored_whole(place, index):
    n = 6_000 if place.kind == "milvus" else 20_000  # milvus-lite takes its time
    codes = random_codes(n, distinct=50)
    assert index.add(keys(n), codes, [{"i": i} for i in range(n)]) == n
    assert index.add(keys(n), codes) == 0
    assert len(index) == n
    assert index.keys() == keys(n)
    far = plain.distances(codes[0], codes, 48)
    assert answer(index.search(codes[:1], k=3000)[0]) == expected(far, plain.top(far, 3000))
    assert index.remove(keys(n - 1000)) == n - 1000
    first = next(i for i in range(n - 1000, n) if (codes[i] == codes[-1]).all())
    assert answer(index.search(codes[-1:], k=1)[0]) == ([f"item {first}"], [0])
    assert index.verify() == []


def test_what_cannot_be_stored_is_refused_and_nothing_of_it_is_stored(index):
    for names, codes, metadata, said in (
        (["x"], random_codes(1, 64), None, "8 bytes a row"),
        (["x", "x"], random_codes(2), None, "given twice"),
        (["x", ""], random_codes(2), None, "key 1 is ''"),
        (["k" * 10_000], random_codes(1), None, "10000 bytes, and at most"),
        (["x"], random_codes(1), [{"a": {1}}], "not JSON"),
    ):
        with pytest.raises(InputError, match=said) as problem:
            index.add(names, codes, metadata)
        assert "\n" not in str(problem.value)
    with pytest.raises(InputError, match="k=0"):
        index.search(random_codes(1), k=0)
    with pytest.raises(InputError, match="radius=-1"):
        index.within(random_codes(1), radius=-1)
    with pytest.raises(InputError, match="not a comparison"):
        index.search(random_codes(1), where={"a": {"like": 1}})
    assert len(index) == 0


def test_every_call_on_a_closed_handle_is_refused(place):
    index = adsh.open_index(place.location, bits=48)
    index.close()
    index.close()
    calls = (lambda: index.get(["a"]), lambda: "a" in index, lambda: index.get_note("x"), lambda: len(index),
            lambda: index.add(["a"], random_codes(1)), lambda: index.search(random_codes(1)))  # fmt: skip
    for call in calls:
        with pytest.raises(adsh.AdshError, match="closed"):
            call()


def test_vectors_of_another_index_can_be_taken_over(place, tmp_path):
    if not place.vectors:
        pytest.skip("this kind of index keeps no vectors")
    features = np.random.default_rng(0).normal(size=(300, 8))
    with adsh.open_index(tmp_path / "other", bits=48) as other:
        other.add(keys(300), random_codes(300, distinct=2), vectors=features)
        with adsh.open_index(place.location, bits=48) as index:
            index.set_projection(other.projection)
            index.adopt(other.projection)  # its old name; the second time does nothing
            index.add(keys(300), random_codes(300, distinct=2), vectors=other.stored_vectors(keys(300)))
            query = features[:1] + 0.1
            found = [one.search(random_codes(1), k=9, vectors=query, rerank=True)[0].keys for one in (index, other)]
            assert found[0] == found[1]
