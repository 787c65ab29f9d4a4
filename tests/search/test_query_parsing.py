"""How the queries of a search are parsed, and the messages about what cannot be a query."""

from __future__ import annotations

import json

import numpy as np
import pytest

from adsh.errors import InputError
from adsh.index.filters import Filter
from adsh.search.query_parsing import open_queries, parse_conditions

from ..data.image_cases import random_images, save


def test_rows_of_several_files_are_separate_queries(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("two.npy", np.arange(8.0).reshape(2, 4))
    np.save("one.npy", np.arange(4.0))  # a vector is one row
    queries = open_queries(["two.npy", "one.npy"])
    assert list(queries.keys) == ["two.npy[0]", "two.npy[1]", "one.npy"]
    assert queries[2].tolist() == [0, 1, 2, 3]


def test_what_cannot_be_a_query_is_reported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "cat.png", random_images(1, 8, 8)[0])
    np.save("four.npy", np.zeros((2, 4)))
    np.save("five.npy", np.zeros((2, 5)))
    np.save("text.npy", np.array(["a"]))
    (tmp_path / "no.npy").write_text("no array")
    (tmp_path / "folder").mkdir()
    for given, said in (
        (["nowhere.png"], "nowhere.png does not exist"),
        (["folder"], "folder is a folder: give images"),
        (["cat.png", "four.npy"], "give one kind at a time"),
        (["no.npy"], "no.npy is not a NumPy file of numbers"),
        (["text.npy"], "holds <U1 of shape (1,)"),
        (["four.npy", "five.npy"], "different shapes"),
    ):
        with pytest.raises(InputError) as problem:
            open_queries(given)
        assert said in str(problem.value)


def test_conditions_are_read_as_people_write_them():
    assert parse_conditions([]) is None
    assert parse_conditions(["class=cat", "year>=2000", "year < 2010"]) == {
        "class": {"eq": "cat"},
        "year": {"ge": 2000, "lt": 2010},
    }
    assert parse_conditions(["class!=7"]) == {"class": {"not_in": [7, "7"]}}  # the number, and the name of a class
    with pytest.raises(InputError, match="give FIELD=VALUE"):
        parse_conditions(["cat"])


def test_conditions_on_one_field_must_all_hold():
    where = parse_conditions(["class=cat", "class=outdoor", "class=outdoor", "class!=wet", "class!=7"])
    accepts = Filter(where).accepts
    for tags, accepted in (
        (["cat", "outdoor"], True),
        (["cat", "outdoor", "dog"], True),
        (["cat"], False),
        (["outdoor"], False),
        (["cat", "outdoor", "wet"], False),
        (["cat", "outdoor", "7"], False),
        ("cat", False),
    ):
        assert accepts(json.dumps({"class": tags})) is accepted
    for wrong, said in (({"all": 1}, "takes a list"), ({"all": [{"all": [1]}]}, 'holds another "all"')):
        with pytest.raises(InputError, match=said):
            Filter({"class": wrong})
    numbered = Filter(parse_conditions(["class=7", "class=8"])).accepts  # names of classes, or numbers
    assert [numbered(json.dumps({"class": tags})) for tags in (["7", "8"], [7, 8], ["7"])] == [True, True, False]


def test_one_of_several_values_or_conditions():
    from adsh.index.filters import Filter
    from adsh.search.query_parsing import parse_conditions

    items = [
        {"class": "cat", "year": 1985}, {"class": "dog", "year": 2001}, {"class": "bird"}, {"class": "7", "year": 7},
    ]  # fmt: skip

    def found(*texts):
        where = Filter(parse_conditions(list(texts)))
        return [number for number, item in enumerate(items) if where.holds(item)]

    assert found("class in cat, dog") == [0, 1]
    assert found("class not in cat,dog") == [2, 3]
    assert found("class in 7") == found("year in 7,8") == [3]
    assert found("class=cat or class=bird") == [0, 2]
    assert found("class=cat OR year>2000 or class in bird,7") == [0, 1, 2, 3]
    assert found("class=cat or class=dog", "year<1990 or year>3000") == [0]
    assert found("class=this or that") == []  # a value with the word in it
