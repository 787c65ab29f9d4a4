"""Filters on numbers: decided from columns, and exactly what the JSON says."""

import json
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import adsh
from adsh.errors import BusyError, SearchTimeoutError
from adsh.index.deadline import time_limit
from adsh.index.embedded.filter_results import FilterResults
from adsh.index.filters import Filter
from adsh.index.number_columns import NumberColumns, arrays_of, columns_from_arrays
from adsh.index.text_column import TextColumn
from tests.index import stores
from tests.index.cases import keys, random_codes

N = 20_000  # from 16,384 items on, a snapshot stores the columns

numbers = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 0.5, 1e300, 2**53, 2**53 + 1, -(2**60), 2**70, 10**400, 1.5e-320, float(2**53)]),
)
values = st.one_of(numbers, st.booleans(), st.none(), st.sampled_from(["", "1", "b"]), st.lists(numbers, max_size=2))
fields = st.dictionaries(st.sampled_from(["a", "b", "c\u00e9"]), values, max_size=3)
conditions = st.one_of(
    values,
    st.fixed_dictionaries({}, optional=dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), values)).filter(bool),
    st.fixed_dictionaries({}, optional={test: st.lists(values, max_size=3) for test in ("in", "not_in")}).filter(bool),
)


@given(
    st.lists(fields, min_size=1, max_size=40),
    st.dictionaries(st.sampled_from(["a", "b", "c\u00e9"]), conditions, max_size=2),
)
def test_columns_decide_what_the_json_says(metadata, where):
    texts = [json.dumps(one, separators=(",", ":")).encode() for one in metadata]
    column, condition = TextColumn.of(texts), Filter(where)
    stored = NumberColumns(column, columns_from_arrays(arrays_of(NumberColumns(column).columns())))
    results = FilterResults(condition, column, stored)
    everything = np.arange(len(metadata))
    assert results.accepted(everything).tolist() == [condition.holds(one) for one in metadata]


@pytest.fixture
def index(tmp_path):
    with adsh.open_index(tmp_path / "i", bits=48) as index:
        index.add(keys(N), random_codes(N), [{"serial": i, "half": i / 2, "kind": f"k{i % 3}"} for i in range(N)])
        index.compact()
        yield index


def count_parsed(monkeypatch):
    calls = []
    accepts = Filter.accepts
    monkeypatch.setattr(Filter, "accepts", lambda self, text: calls.append(text) or accepts(self, text))
    return calls


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"serial": 777}, ["item 777"]),
        ({"half": {"ge": 9999}}, ["item 19998", "item 19999"]),
        ({"serial": {"in": [3, 5, -1]}, "kind": "k0"}, ["item 3"]),
        ({"serial": {"lt": 0}}, []),
    ],
)
def test_a_rare_number_is_found_without_parsing_all_metadata(index, where, expected, monkeypatch):
    calls = count_parsed(monkeypatch)
    assert sorted(index.search(random_codes(1), k=10, where=where)[0].keys) == expected
    assert sorted(index.within(random_codes(1), 48, where=where)[0].keys) == expected
    assert len(calls) < N / 20


def accepted(metadata, where):
    """Return the positions of the items that a filter accepts."""
    column = TextColumn.of([json.dumps(one, separators=(",", ":")).encode() for one in metadata])
    results = FilterResults(Filter(where), column, NumberColumns(column))
    return np.flatnonzero(results.accepted(np.arange(len(metadata)))).tolist()


def test_a_number_after_many_texts_is_found_without_parsing_all_metadata(monkeypatch):
    texts = {f"text {i:02}": "t" for i in range(20)}
    calls = count_parsed(monkeypatch)
    assert accepted([texts | {"year": i} for i in range(1000)], {"year": 777}) == [777]
    assert len(calls) < 50


def test_a_number_that_later_items_lack_or_have_among_many_texts_stays_decided(monkeypatch):
    texts = {f"text {i:03}": "t" for i in range(300)}
    blocks = [{"year": i} for i in range(8192)], [texts | {"year": i} for i in range(90)]
    calls = count_parsed(monkeypatch)
    assert accepted([*blocks[0], *blocks[1]], {"year": 77}) == [77, 8192 + 77]
    assert accepted([*blocks[0], *[{"kind": "t"}] * 90], {"year": 77}) == [77]
    assert len(calls) < 50


def test_no_more_than_16_numbers_get_a_column():
    texts = [json.dumps({f"n{i:02}": i for i in range(40)}).encode()] * 3
    assert list(NumberColumns(TextColumn.of(texts)).columns()) == [f"n{i:02}" for i in range(16)]


def test_a_rare_text_or_field_is_found_without_parsing_all_metadata(index, monkeypatch):
    index.add(["one", "two"], random_codes(2), [{"kind": "r\u00e4re"}, {"other": [1, 2]}])
    index.compact()
    calls = count_parsed(monkeypatch)
    assert index.search(random_codes(1), k=10, where={"kind": "r\u00e4re"})[0].keys == ["one"]
    assert index.search(random_codes(1), k=10, where={"other": 2})[0].keys == ["two"]
    assert len(calls) < N / 2


def test_ties_of_a_rare_filter_come_in_the_order_of_insertion_and_deleted_items_do_not(tmp_path):
    with adsh.open_index(tmp_path / "i", bits=48) as index:
        codes = random_codes(N, distinct=3)
        index.add(keys(N), codes, [{"serial": i % 5000} for i in range(N)])
        index.compact()
        index.remove(["item 5007"])
        [found] = index.search(codes[:1], k=10, where={"serial": 7})
        far = {f"item {i}": int(np.bitwise_count(codes[i] ^ codes[0]).sum()) for i in (7, 10007, 15007)}
        assert found.keys == sorted(far, key=lambda key: (far[key], int(key[5:])))
        assert found.distances.tolist() == sorted(far.values())


def test_a_search_ends_at_its_time_limit_and_the_next_one_goes_on(index):
    with pytest.raises(SearchTimeoutError, match="took longer than 1e-09 s and was stopped"), time_limit(1e-9):
        index.search(random_codes(1), k=10, where={"kind": {"lt": "a"}})
    assert issubclass(SearchTimeoutError, BusyError)
    assert index.search(random_codes(1), k=10, where={"kind": {"lt": "a"}})[0].keys == []
    with time_limit(60):
        assert len(index.search(random_codes(1), k=10, where={"kind": {"lt": "l"}})[0]) == 10


def test_a_time_limit_counts_by_the_clock_it_is_given(index):
    """That of the process leaves out what others take: on a busy machine, a cheap search would look expensive."""
    with time_limit(1e-9, lambda: 0.0):
        assert len(index.search(random_codes(1), k=10, where={"kind": {"lt": "l"}})[0]) == 10


def test_a_time_limit_holds_for_its_thread_alone(index):
    found = []

    def search():
        found.extend(index.search(random_codes(1), where={"serial": 5})[0].keys)

    with time_limit(1e-9):
        other = threading.Thread(target=search)
        other.start()
        other.join()
        with pytest.raises(SearchTimeoutError):
            search()
    assert found == ["item 5"]


def test_postgresql_stops_a_search_at_its_time_limit():
    with adsh.open_index(stores.place("postgres", None).location, bits=48) as index:
        index.add(keys(3000), random_codes(3000), [{"serial": i} for i in range(3000)])
        with pytest.raises(SearchTimeoutError), time_limit(1e-4):
            index.search(random_codes(50), k=10, where={"serial": 2999})
        assert index.search(random_codes(1), k=10, where={"serial": 2999})[0].keys == ["item 2999"]
