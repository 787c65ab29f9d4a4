"""Corrections: applied at once, kept with the index, undone as a whole; the same in every kind of index."""

import threading

import numpy as np
import pytest

import adsh
from adsh.errors import InputError
from adsh.index.corrections import Corrections

CODES = {"cat": b"\x0f\x0f", "dog": b"\xf0\xf0"}


def code_for(labels):
    return CODES.get(labels[0]) if len(labels) == 1 else None


@pytest.fixture
def index(place):
    with adsh.open_index(place.location, bits=16) as opened:
        codes = np.frombuffer(CODES["cat"] * 5, np.uint8).reshape(5, 2)
        metadata = [*({"class": "cat", "file": f"{n}.jpg"} for n in range(3)), {"class": ["cat", "old"]}, None]
        opened.add([f"k{n}" for n in range(5)], codes, metadata, by_network=[False] * 4 + [True])
        yield opened


def test_several_items_are_corrected_at_once_and_it_is_undone(index, place):
    before = index.get([f"k{n}" for n in range(5)])
    created = Corrections(index, code_for).add({"k0": ["dog"], "k3": None, "k4": ["lynx"]}, "Kim")
    assert (created.number, created.who, [item.code_changed for item in created.items]) == (
        1,
        "Kim",
        [True, False, False],
    )
    now = index.get([f"k{n}" for n in range(5)])
    assert (now[0].metadata, now[0].code) == ({"class": "dog", "file": "0.jpg"}, CODES["dog"])
    assert (now[3].metadata, now[3].code) == (None, CODES["cat"])
    assert (now[4].metadata, now[4].code) == ({"class": "lynx"}, CODES["cat"])
    assert now[1:3] == before[1:3]
    with adsh.open_index(place.location) as another:  # as after a restart
        [kept] = Corrections(another).open()
        assert kept == created
        undone = Corrections(another).undo(1)
    assert undone.state == "undone"
    assert index.get([f"k{n}" for n in range(5)]) == before
    assert index.networks(["k0", "k4"]) == [None, 0]
    assert Corrections(index).open() == []
    with pytest.raises(InputError, match="undone already"):
        Corrections(index).undo(1)


def test_corrections_of_one_item_are_undone_from_the_last(index):
    kept = Corrections(index, code_for)
    kept.add({"k0": ["dog"]})
    kept.add({"k0": ["lynx"]})
    with pytest.raises(InputError, match="undo the later change first"):
        kept.undo(1)
    kept.undo(2)
    assert index.get(["k0"])[0].metadata["class"] == "dog"
    kept.undo(1)
    assert index.get(["k0"])[0].metadata["class"] == "cat"


def test_those_that_an_update_used_are_closed(index):
    kept = Corrections(index, code_for)
    numbers = [kept.add({f"k{n}": ["dog"]}).number for n in range(3)]
    assert numbers == [1, 2, 3]
    kept.use([1, 3])
    assert [each.number for each in kept.open()] == [2]
    kept.use([2])
    assert kept.open() == []
    assert kept.add({"k0": ["cat"]}).number == 4
    with pytest.raises(InputError, match="used already"):
        kept.undo(1)


def test_what_cannot_be_corrected_is_refused_and_nothing_is_stored(index):
    kept = Corrections(index, code_for)
    for labels, words in (
        ({"k0": ["dog"], "nobody": ["cat"]}, "'nobody'"),
        ({}, "correct from 1 to"),
        ({"k0": [""]}, "is no label"),
        ({"k0": "dog"}, "give a list"),
        ({"k0": ["a\nb"]}, "is no label"),
        ({f"k{n}": ["x"] for n in range(201)}, "correct from 1 to 200"),
    ):
        with pytest.raises(InputError, match=words):
            kept.add(labels)
    assert kept.open() == []
    assert index.get(["k0"])[0].metadata["class"] == "cat"


def test_two_writers_never_take_one_number(place):
    with adsh.open_index(place.location, bits=16) as index:
        index.add([f"k{n}" for n in range(12)], np.zeros((12, 2), np.uint8))

    def correct(start):
        with adsh.open_index(place.location) as own:
            for n in range(start, start + 6):
                Corrections(own).add({f"k{n}": ["cat"]})

    writers = [threading.Thread(target=correct, args=(start,)) for start in (0, 6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with adsh.open_index(place.location) as index:
        found = Corrections(index).open()
        assert sorted(item.key for each in found for item in each.items) == sorted(f"k{n}" for n in range(12))
        assert index.count({"class": "cat"}) == 12
