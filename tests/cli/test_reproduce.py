"""`adsh reproduce` as typed."""

from __future__ import annotations

from pathlib import Path

DIGITS = ("--dataset", "digits", "--bits", 8, "--method", "itq", "--out", "out")


def test_a_table_is_written_and_printed(adsh, tmp_path):
    ended = adsh("reproduce", "table1", *DIGITS)
    assert ended.status == 0
    assert "| ITQ | **." in ended.out
    assert "out/table1.md" in ended.out
    assert "cell 1/1: ITQ, 8 bits, seed 0" in ended.err
    again = adsh("reproduce", "table1", *DIGITS, "--json").json
    assert (again["cells run"], again["cells reused"], again["failed"]) == (0, 1, {})
    assert again["kept from before"] == again["cells reused"]  # the key that programs may read already


def test_earlier_names_of_flags_are_accepted(adsh):
    ended = adsh("reproduce", "table1", *DIGITS, "--choose", "--largest", 10)
    assert ended.status == 0


def test_a_cell_that_fails_is_reported_in_one_line(adsh):
    ended = adsh("reproduce", "table1", *DIGITS, "--bits", 300)
    assert ended.status == 2
    assert "itq-300bits-seed0 failed: bits=300" in ended.err
    assert "Traceback" not in ended.err


def test_an_unknown_experiment_lists_what_there_is(adsh):
    ended = adsh("reproduce", "table3", *DIGITS)
    assert ended.status == 2
    assert ended.err.count("\n") == 1
    assert "choose among table1, table2, top-k" in ended.err


def test_no_experiment_lists_what_there_is(adsh):
    ended = adsh("reproduce", *DIGITS)
    assert ended.status == 2
    assert "no experiment is named: choose among table1" in ended.err


def test_the_cells_of_an_interrupted_run_are_merged(adsh):
    adsh("reproduce", "table1", *DIGITS)
    Path("out/cells").mkdir()
    (Path("out/cells") / "itq-12bits-seed0.json").write_text('{"bits": 12}')
    merged = adsh("reproduce", "--merge", "--out", "out", "--json").json
    assert merged == {"cells merged": 1, "cells": 2, "file": "out/cells.jsonl"}
    assert not Path("out/cells").exists()
    ended = adsh("reproduce", "--merge", "--out", "out")
    assert (ended.status, ended.err) == (0, "")
    assert "cells merged  0" in ended.out


def test_a_folder_without_cells_cannot_be_merged(adsh):
    ended = adsh("reproduce", "--merge", "--out", "nothing")
    assert ended.status == 2
    assert "nothing holds no cells" in ended.err
    assert not Path("nothing").exists()


def test_latex_and_a_merge_come_with_a_table(adsh):
    adsh("reproduce", "table1", *DIGITS)
    files = adsh("reproduce", "table1", *DIGITS, "--no-run", "--tex", "--merge", "--json").json["table1"]
    assert "out/table1.tex" in files
