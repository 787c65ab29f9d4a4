"""What each verb does, through the entry point."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

import adsh as package

TRAIN = ("train", "blobs.npz", "--bits", 12, "--outer", 4, "--out", "model")


def test_a_model_is_trained_described_and_loaded(adsh, blob_file):
    ended = adsh(*TRAIN)
    assert ended.status == 0
    assert ended.err == ""  # nothing animated, nothing at all, where it is no terminal
    assert "adsh evaluate model" in ended.out
    model = package.load("model")
    assert len(model.code_table_) == 270  # a tenth are queries
    summary = adsh("info", "model", "--json").json
    assert (summary["bits"], summary["network"], summary["points"]) == (12, "mlp", 270)
    assert "270" in adsh("info", "model").out


def test_the_run_is_stored_with_the_model_and_repeats_it(adsh, blob_file):
    adsh(*TRAIN, "--seed", 3)
    run = tomllib.loads((blob_file.parent / "model/run.toml").read_text())
    assert run["train"]["source"] == str(blob_file)
    assert (run["train"]["bits"], run["train"]["seed"], run["recipe"]["outer"]) == (12, 3, 4)
    assert adsh("train", "--config", "model/run.toml", "--out", "again").status == 0
    for name in ("model.safetensors", "codes.safetensors", "row_numbers.npy"):
        assert (blob_file.parent / "model" / name).read_bytes() == (blob_file.parent / "again" / name).read_bytes()
    assert adsh("train", "--config", "model/run.toml", "--bits", 16, "--out", "wider").status == 0  # flags over TOML
    assert package.load("wider").bits == 16
    assert package.load("wider").recipe_.outer == 4


@pytest.mark.parametrize("method", ["adsh", "dpsh"])
def test_compiling_can_be_turned_on_and_off(adsh, blob_file, method):
    for flag, mode in (("--compile", "reduce-overhead"), ("--no-compile", False)):
        assert adsh(*TRAIN, "--method", method, flag, "--overwrite").status == 0
        assert package.load("model").recipe_.compile == mode
    assert adsh("train", "blobs.npz", "--method", "itq", "--compile").err.count("itq has no --compile") == 1


def test_every_iteration_is_logged(adsh, blob_file):
    adsh(*TRAIN)
    events = [json.loads(line) for line in (blob_file.parent / "model/log.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["read", "start", *["outer"] * 4, "saved"]
    assert events[1]["recipe"]["samples"] == 270
    assert {"loss", "rows", "items_per_second", "lr", "seconds"} <= events[2].keys()


def test_tensorboard_gets_the_same_figures(adsh, blob_file):
    pytest.importorskip("tensorboard", reason="adsh[track] is not installed")
    adsh(*TRAIN, "--tensorboard")
    assert list((blob_file.parent / "model/tensorboard").glob("events.*"))


def test_evaluation_is_on_the_split_of_the_run(adsh, blob_file, no_figures):
    adsh(*TRAIN)
    ended = adsh("evaluate", "model", "--json")
    assert ended.status == 0
    summary = ended.json
    assert (summary["queries"], summary["database"], summary["bits"]) == (30, 270, 12)
    assert summary["learned"]["map_expected"] > 0.95
    assert summary["about"]["protocol"] == "holdout"
    with np.load("model/split.npz") as split:
        assert not np.intersect1d(split["queries"], split["database"]).size
    assert (blob_file.parent / "model/report/report.html").exists()
    drawn = adsh("evaluate", "model", "--data", "blobs.npz", "--protocol", "holdout", "--out", "drawn", "--json").json
    assert drawn["learned"] == summary["learned"]
    assert "codes as learned" in adsh("evaluate", "model").out


def test_reports_are_compared(adsh, blob_file, no_figures):
    for bits in (8, 12):
        adsh("train", "blobs.npz", "--bits", bits, "--outer", 2, "--out", f"m{bits}")
        adsh("evaluate", f"m{bits}", "--folds", 0)
    summary = adsh("compare", "m8/report", "m12/report", "--out", "both", "--json").json
    assert [row["bits"] for row in summary["rows"]] == ["8"] * 3 + ["12"] * 3
    assert (blob_file.parent / "both/report.html").exists()
    assert "report  both" in adsh("compare", "m8/report", "m12/report", "--out", "both").out


def test_a_source_is_coded_into_a_file(adsh, blob_file, blobs):
    adsh(*TRAIN)
    assert adsh("encode", "model", "blobs.npz", "--out", "codes.npz").status == 0
    with np.load("codes.npz") as held:
        assert held["bits"] == 12
        assert held["keys"][7] == "7"
        assert np.array_equal(held["codes"], package.load("model").encode(blobs[0]))
        codes = held["codes"]
    assert adsh("encode", "model", "blobs.npz", "--out", "codes.npy", "--json").json["items"] == 300
    assert np.array_equal(np.load("codes.npy"), codes)


def test_coding_by_ray_prints_what_a_program_reads_and_no_password(adsh, blob_file, monkeypatch):
    pytest.importorskip("pyarrow", reason="adsh[ray] is not installed")
    from adsh import index
    from adsh.cluster import ray_encode

    def coded(job, **_):
        print("(raylet) a node is lost")  # as Ray does
        return ray_encode.Result(3, 0, 300)

    assert adsh(*TRAIN).status == 0
    monkeypatch.setattr(ray_encode, "encode_with_ray", coded)
    opened = SimpleNamespace(get_note=lambda _: "model")
    monkeypatch.setattr(index, "open_index", lambda *_, **__: nullcontext(opened))
    into = ("--out", "c", "--index", "postgresql://me:secret@h/d")
    ended = adsh("encode", "model", "blobs.npz", "--engine", "ray", *into, "--json")
    assert ended.json["items"] == 300
    assert ended.json["index"] == "postgresql://me@h/d"
    assert "a node is lost" in ended.err
    assert "secret" not in ended.out + ended.err


def test_the_demo_learns_searches_and_writes_its_page(adsh, tmp_path):
    ended = adsh("demo", "--out", "demo", "--json")
    assert ended.status == 0
    summary = ended.json
    assert summary["map"]["learned"] >= 0.97
    assert summary["map"]["network"] >= 0.97
    assert summary["map"]["random_projections"] < 0.6
    page = (tmp_path / "demo/report.html").read_text()
    assert page.count("<img") >= 24 * 11  # eight queries, three codings, the query and its ten nearest
    assert "random projections" in page
    again = adsh("demo", "--out", "demo")
    assert "demo/report.html" in again.out
    assert "adsh train" in again.out


@pytest.mark.parametrize("verb", ["", "demo", "train", "encode", "evaluate", "compare", "features", "info", "search"])
def test_help_has_an_example_and_needs_no_torch(verb):
    program = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] in ('torch', 'numpy', 'PIL', 'safetensors', 'rich'):\n"
        "            raise ImportError(name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        f"sys.argv = ['adsh', *{verb.split()}, '--help']\n"
        "from adsh.cli import main\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert f"adsh {verb or 'demo'}" in ended.stdout
    assert "Example:" in ended.stdout or not verb


def test_every_verb_has_an_example_and_a_line_that_fits_its_list(adsh):
    import typer

    from adsh.cli.app import ORDER, app

    group = typer.main.get_command(app)
    assert set(group.commands) == set(ORDER)  # one that is missing there would break the help
    assert group.list_commands(None) == list(ORDER)
    verbs = list(group.commands.items())
    verbs += [
        (f"{name} {sub}", one) for name, command in verbs for sub, one in getattr(command, "commands", {}).items()
    ]
    assert len(verbs) > 20
    for name, command in verbs:
        assert command.epilog.startswith(f"Example:  adsh {name}"), name
    for listing in (adsh("--help").out, adsh("index", "--help").out, adsh("data", "--help").out):
        assert "..." not in listing.partition("Commands:")[2]


def test_the_version_and_bare_help(adsh):
    assert adsh("--version").out == f"adsh {package.__version__}\n"
    ended = adsh()
    assert ended.status == 0
    assert "Commands:" in ended.out
