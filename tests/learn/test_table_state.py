"""What a table must keep to go on, and how many bytes that takes."""

import numpy as np
import pytest

from adsh.learn import CodeTable

from .cases import KINDS, draw, labelled, outputs


@pytest.mark.parametrize("separate", [False, True])
def test_a_table_goes_on_from_the_state_of_another(separate):
    rng = np.random.default_rng(8)
    labels, _ = labelled("multi-label", 50, 5, rng)
    query_labels = labelled("multi-label", 30, 5, rng)[0] if separate else None
    gamma = 0.0 if separate else 50.0
    one, other = (CodeTable(labels, 10, queries=query_labels) for _ in range(2))
    other.restore(one.state())
    assert other.last_update is None
    samples = [draw(one, 12, rng) for _ in range(6)]
    for omega in samples[:3]:
        one.update(omega, outputs(12, 10, rng), gamma)
    other.similarity_sums(samples[0])
    if not separate:
        other.codes_of(samples[0])  # what it remembers of the codes before
    state = one.state()
    other.restore(state)
    kept = {name: array.copy() for name, array in state.items()}
    for name in ("gram", "label_sets", "sums", "ratio", "samples"):
        assert np.array_equal(getattr(other.last_update, name), getattr(one.last_update, name)), name
    for omega in [samples[0], *samples[3:]]:
        U = outputs(12, 10, rng)
        if not separate:
            assert np.array_equal(other.codes_of(omega), one.codes_of(omega))
        assert other.update(omega, U, gamma) == one.update(omega, U, gamma)
        assert np.array_equal(other.dense(), one.dense())
    assert all(np.array_equal(kept[name], array) for name, array in state.items())  # nothing was written into it


@pytest.mark.parametrize("bits", [4, 20])
def test_a_state_takes_the_bytes_foretold_where_every_sampled_point_gets_a_row_of_its_own(bits):
    table = CodeTable(np.arange(90) % 30, bits)
    signs = np.ones((30, bits))
    table.update(np.arange(30), -signs, 0.0)  # every code is -1 ...
    foretold = table.state_bytes(30)
    assert stored(table) < foretold
    table.update(np.arange(30), signs, 1e9)  # ... and the sampled points leave it
    assert len(table.rows) == 60
    assert stored(table) == foretold
    assert table.state_bytes(1000) == table.state_bytes(90) > foretold


def test_the_state_of_a_table_with_separate_queries_takes_the_bytes_foretold():
    """More label sets may ask than the database has, and no point is split off."""
    rng = np.random.default_rng(10)
    table = CodeTable(np.arange(90) % 3, 6, queries=np.arange(40) % 20)
    table.update(np.arange(20), outputs(20, 6, rng), 0.0)
    assert stored(table) == table.state_bytes(20) == table.state_bytes(1000)


def stored(table):
    return sum(array.nbytes for array in table.state().values())


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_and_row_numbers_never_take_more_bytes_than_foretold(kind):
    rng = np.random.default_rng(9)
    labels, _ = labelled(kind, 600, 5, rng)
    table = CodeTable(labels, 12)
    foretold = [(table.state_bytes(60 * w), table.number_bytes(60 * w)) for w in range(1, 8)]
    for state_bytes, number_bytes in foretold:
        omega = draw(table, 60, rng)
        table.update(omega, outputs(len(omega), 12, rng), 200.0)
        assert stored(table) <= state_bytes
        assert table.row_numbers().nbytes <= number_bytes


def test_row_numbers_take_one_byte_for_up_to_255_rows_and_none():
    table = CodeTable(np.arange(600) % 5, 8)
    assert [table.number_bytes(updates) for updates in (0, 250, 251)] == [600, 600, 1200]
