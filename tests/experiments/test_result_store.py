"""Records of cells: what an interrupted run leaves, what a merge makes of it, and several processes at once."""

from __future__ import annotations

import builtins
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from adsh.errors import AdshWarning, FolderError
from adsh.evaluate.examples import Case
from adsh.experiments import ExperimentConfig, reproduce
from adsh.experiments.cell import Cell
from adsh.experiments.result_store import ResultStore

from .configs import CHEAP

RESULTS = Path(__file__).parents[2] / "results"
FOLDERS = sorted(path.parent.name for path in RESULTS.glob("*/cells.jsonl"))
A, B, C = (Cell("adsh", bits, 0) for bits in (12, 24, 48))


def lines(out):
    return (out / "cells.jsonl").read_text().splitlines()


def test_a_merge_moves_the_records_into_one_sorted_file(tmp_path):
    store = ResultStore(tmp_path)
    for cell in (C, A, B):
        store.write(cell, {"seconds": 1 / 3, "bits": cell.bits})
    assert len(list(tmp_path.glob("cells/*.json"))) == 3
    assert store.merge() == 3
    assert not (tmp_path / "cells").exists()
    assert lines(tmp_path)[0] == '{"bits": 12, "cell": "adsh-12bits-seed0", "seconds": 0.333333}'
    assert [json.loads(line)["cell"] for line in lines(tmp_path)] == [A.name, B.name, C.name]
    assert store.read(B) == {"bits": 24, "seconds": 0.333333}
    assert [cell for cell, _ in store.results([C, replace(A, seed=1), A])] == [C, A]
    assert store.count() == 3


def test_a_second_merge_changes_nothing(tmp_path):
    store = ResultStore(tmp_path)
    assert store.merge() == 0
    assert not list(tmp_path.iterdir())
    store.write(A, {"bits": 12})
    store.merge()
    before = (tmp_path / "cells.jsonl").stat()
    assert store.merge() == 0
    assert (tmp_path / "cells.jsonl").stat().st_mtime_ns == before.st_mtime_ns


def test_a_folder_from_before_cells_jsonl_is_read(tmp_path):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / f"{A.name}.json").write_text('{"method": "adsh", "bits": 12}\n')
    store = ResultStore(tmp_path)
    assert store.has(A)
    assert not store.has(B)
    assert store.read(A) == {"method": "adsh", "bits": 12}
    assert store.merge() == 1
    assert ResultStore(tmp_path).read(A) == {"method": "adsh", "bits": 12}


def test_a_file_of_its_own_counts_before_the_merged_record(tmp_path):
    store = ResultStore(tmp_path)
    store.write(A, {"bits": 1})
    store.merge()
    store.write(A, {"bits": 2})
    assert store.read(A) == {"bits": 2}
    assert store.count() == 1
    store.merge()
    assert store.read(A) == {"bits": 2}
    assert len(lines(tmp_path)) == 1


def test_lines_of_another_machine_may_be_appended(tmp_path):
    (tmp_path / "cells.jsonl").write_text(
        f'{{"cell": "{B.name}", "k": 1}}\n{{"cell": "{A.name}", "k": 1}}\n{{"cell": "{B.name}", "k": 2}}\n'
    )
    store = ResultStore(tmp_path)
    assert store.read(B) == {"k": 2}
    assert store.merge() == 0
    assert lines(tmp_path) == [f'{{"cell": "{A.name}", "k": 1}}', f'{{"cell": "{B.name}", "k": 2}}']


def test_a_merge_by_another_process_is_seen(tmp_path):
    store, other = ResultStore(tmp_path), ResultStore(tmp_path)
    other.write(A, {"bits": 12})
    other.merge()
    assert store.has(A)
    other.write(B, {"bits": 24})
    other.merge()
    assert store.read(B) == {"bits": 24}


@pytest.mark.parametrize("line", ["{", "[]", '{"bits": 12}', "3"])
def test_a_broken_line_is_named(tmp_path, line):
    (tmp_path / "cells.jsonl").write_text(f'{{"cell": "{A.name}"}}\n{line}\n')
    with pytest.raises(FolderError, match=r"cells\.jsonl, line 2 is no complete record .*: remove the line"):
        ResultStore(tmp_path).read(A)


def test_a_broken_file_stays_and_the_others_are_merged(tmp_path):
    store = ResultStore(tmp_path)
    store.write(A, {"bits": 12})
    broken = tmp_path / "cells" / f"{B.name}.json"
    broken.write_text("{")
    with pytest.raises(FolderError, match="is no complete record"):
        store.merge()
    assert store.read(A) == {"bits": 12}
    assert [json.loads(line)["cell"] for line in lines(tmp_path)] == [A.name]
    with pytest.raises(FolderError, match=f"{B.name}.json is no complete record"):
        store.read(B)


def test_a_record_that_is_missing_is_named(tmp_path):
    with pytest.raises(FolderError, match="holds no record of adsh-12bits-seed0"):
        ResultStore(tmp_path).read(A)


def test_without_locks_records_stay_in_files_of_their_own(tmp_path, monkeypatch):
    imported = builtins.__import__

    def without(name, *rest):
        if name == "fcntl":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    store = ResultStore(tmp_path)
    store.write(A, {"bits": 12})
    with pytest.raises(FolderError, match="cannot be locked"):
        store.merge()
    assert store.read(A) == {"bits": 12}


def test_a_merge_that_fails_after_a_run_is_a_warning(tmp_path):
    (tmp_path / "cells").mkdir()
    (tmp_path / "cells" / f"{B.name}.json").write_text("{")
    with pytest.warns(AdshWarning, match="is no complete record"):
        outcome = reproduce(["table1"], replace(CHEAP, methods=("itq",), bits=(8,)), tmp_path)
    assert outcome.ran == 1
    assert "ITQ" in (tmp_path / "table1.md").read_text()


WRITER = """
import sys
from pathlib import Path
from adsh.experiments.cell import Cell
from adsh.experiments.result_store import ResultStore
out, first = Path(sys.argv[1]), int(sys.argv[2])
store = ResultStore(out)
for seed in range(first, first + 60):
    store.write(Cell("adsh", 12, seed), {"seed": seed})
    store.write(Cell("itq", 12, seed % 20), {"seed": seed % 20})  # the others write these as well
    if seed % 7 == 0:
        store.merge()
    for earlier in range(first, seed + 1):
        assert store.read(Cell("adsh", 12, earlier)) == {"seed": earlier}
"""


def test_processes_that_write_and_merge_at_once_lose_nothing(tmp_path):
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(first)], stderr=subprocess.PIPE, text=True)
        for first in (0, 100, 200)
    ]
    for process in started:
        _, problem = process.communicate(timeout=120)
        assert process.returncode == 0, problem
    store = ResultStore(tmp_path)
    store.merge()
    for first in (0, 100, 200):
        for seed in range(first, first + 60):
            assert store.read(Cell("adsh", 12, seed)) == {"seed": seed}
    assert len(lines(tmp_path)) == store.count() == 200
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cells.lock", "cells.jsonl"]


@pytest.mark.parametrize("name", FOLDERS)
def test_the_tables_of_results_are_those_of_their_cells(tmp_path, name):
    """The records as committed are in the order of a merge, and give the committed tables, byte for byte."""
    out = tmp_path / name
    out.mkdir()
    for file in ("cells.jsonl", "measured_on.json"):
        shutil.copy(RESULTS / name / file, out / file)
    ResultStore(out).merge()
    assert (out / "cells.jsonl").read_bytes() == (RESULTS / name / "cells.jsonl").read_bytes()
    dataset, _, on_features = name.partition("-")
    images = {} if on_features else {"network": "efficientnet_lite0", "preset": "fast"}
    config = ExperimentConfig(dataset, features="not-here.npy", seeds=(0, 1, 2), **images)
    reproduce(["table1", "table2"], config, out, tune=True, run=False)
    for file in ("table1.json", "table1.md", "table2.json", "table2.md"):
        assert (out / file).read_bytes() == (RESULTS / name / file).read_bytes(), file


def test_the_case_studies_of_results_can_be_read():
    """Their images are in the data set, not in the records; `cases` is the one kind of record that is nested."""
    records = [json.loads(line) for line in lines(RESULTS / "cifar10")]
    cases = [Case.from_json(case) for record in records for case in record.get("cases", ())]
    assert len(cases) == 8 * sum("cases" in record for record in records) > 0  # queries, methods
    assert {len(case.found) for case in cases} == {10}
