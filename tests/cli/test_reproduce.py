"""`adsh reproduce` as typed."""

from __future__ import annotations

DIGITS = ("--dataset", "digits", "--bits", 8, "--method", "itq", "--out", "out")


def test_a_table_is_made_and_shown(adsh, tmp_path):
    ended = adsh("reproduce", "table1", *DIGITS)
    assert ended.status == 0
    assert "| ITQ | **." in ended.out
    assert "out/table1.md" in ended.out
    assert "cell 1/1: ITQ, 8 bits, seed 0" in ended.err
    again = adsh("reproduce", "table1", *DIGITS, "--json").json
    assert (again["cells run"], again["kept from before"], again["failed"]) == (0, 1, {})


def test_a_cell_that_cannot_be_run_is_told_in_one_line(adsh):
    ended = adsh("reproduce", "table1", *DIGITS, "--bits", 300)
    assert ended.status == 2
    assert "itq-300bits-seed0 failed: bits=300" in ended.err
    assert "Traceback" not in ended.err


def test_an_unknown_experiment_lists_what_there_is(adsh):
    ended = adsh("reproduce", "table3", *DIGITS)
    assert ended.status == 2
    assert ended.err.count("\n") == 1
    assert "choose among table1, table2, top-k" in ended.err
