"""An index moves between any two places, and an interrupted move goes on."""

import itertools

import numpy as np
import pytest

import adsh
from adsh.errors import FolderError, InputError
from adsh.index.copy import copy
from tests.index import stores
from tests.index.cases import keys, random_codes

PAIRS = [pair for pair in itertools.product(stores.KINDS, repeat=2) if pair != ("embedded", "embedded")]


def filled(location, n=500, vectors=True, model="a model"):
    features = np.random.default_rng(0).normal(size=(n, 12))
    codes = random_codes(n, 20, distinct=9)
    with adsh.open_index(location, bits=20, model=model) as index:
        index.add(
            keys(n - 9), codes[: n - 9], [{"i": i} for i in range(n - 9)], vectors=features[:-9] if vectors else None
        )
        index.add(keys(9, n - 9), codes[n - 9 :])
        index.remove(keys(5, 100))
        index.note("model", "/models/m")
    return codes, features


@pytest.mark.parametrize(("source", "target"), [("embedded", "embedded"), *PAIRS])
def test_a_copy_holds_and_finds_what_the_original_does(tmp_path, source, target):
    source, target = stores.place(source, tmp_path), stores.place(target, tmp_path)
    codes, features = filled(source.location, vectors=source.vectors)
    seen = []
    done = copy(source.location, target.location, lambda *at: seen.append(at))
    assert (done.items, done.new, done.already) == (495, 495, 0)
    assert done.searches > 0
    assert seen[-1] == (495, 495)
    with adsh.open_index(source.location) as old, adsh.open_index(target.location) as new:
        assert list(old.items()) == list(new.items())
        assert (new.bits, new.model, new.get_note("model")) == (20, "a model", "/models/m")
        assert done.vectors == new.has_vectors == (source.vectors and target.vectors)
        if done.vectors:
            found = [one.search(codes[:1], 30, vectors=features[:1], rerank=True)[0].keys for one in (old, new)]
            assert found[0] == found[1]
        assert new.verify() == []
    again = copy(source.location, target.location)
    assert (again.new, again.already) == (0, 495)


@pytest.mark.parametrize("target", stores.KINDS)
def test_an_interrupted_copy_goes_on_without_repeating(tmp_path, target, monkeypatch):
    monkeypatch.setattr("adsh.index.copy._BATCH", 100)
    source, target = stores.place("embedded", tmp_path), stores.place(target, tmp_path)
    filled(source.location, vectors=target.vectors)

    def stop(done, total):
        if done >= 300:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy(source.location, target.location, stop)
    done = copy(source.location, target.location)
    assert (done.items, done.new, done.already) == (495, 195, 300)
    with adsh.open_index(source.location) as old, adsh.open_index(target.location) as new:
        assert list(old.items()) == list(new.items())


def test_a_copy_onto_other_items_other_bits_itself_or_from_nothing_is_refused(place, tmp_path):
    filled(f"{tmp_path}/old", vectors=False)
    with pytest.raises(InputError, match="is both the source and the target"):
        copy(f"{tmp_path}/old", f"{tmp_path}/old")
    with pytest.raises(InputError, match="there is no index at"):
        copy(f"{tmp_path}/nothing", place.location)
    with adsh.open_index(place.location, bits=20, model="a model") as new:
        new.add(["of my own"], random_codes(1, 20))
    with pytest.raises(InputError, match="and .* does not: copy to an empty place; nothing was written"):
        copy(f"{tmp_path}/old", place.location)
    other = stores.place(place.kind, tmp_path)
    adsh.open_index(other.location, bits=24).close()
    with pytest.raises(InputError, match="bits=20, but .* holds codes of 24 bits"):
        copy(f"{tmp_path}/old", other.location)


def test_items_in_another_order_are_noticed(tmp_path):
    for name, names in (("one", ["a", "b"]), ("two", ["b", "a"])):
        with adsh.open_index(tmp_path / name, bits=8) as index:
            index.add(names, np.zeros((2, 1), np.uint8))
    with pytest.raises(FolderError, match="finds other items for the code of 'a'.*copy to an empty place"):
        copy(str(tmp_path / "one"), str(tmp_path / "two"))
