"""Other methods than ADSH by the same commands."""

from __future__ import annotations

import json

import numpy as np
import pytest

from adsh.methods import DEEP, METHODS

FEW = {"network": ("--outer", 1), "sdh": ("--options", "anchors=100"), "trees": ("--options", "hash_function=ridge")}


def flags(name: str) -> tuple:
    plain = name.removesuffix("_d")
    if plain in DEEP:
        return FEW["network"]
    return FEW.get("trees" if plain in ("lfh", "lfh_decay", "cosdish", "fasth") else plain, ())


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains(adsh, name):
    summary = adsh("train", "digits", "--method", name, "--bits", 8, *flags(name), "--json").json
    assert summary["model"] == f"digits-{name}-8bits"
    assert (summary["method"], summary["bits"], summary["points"]) == (name, 8, 1617)


@pytest.mark.parametrize("name", ["itq", "dsh_d"])
def test_what_it_leaves_is_evaluated_encoded_shown_and_compared(adsh, tmp_path, name, no_figures):
    adsh("train", "digits", "--method", name, "--bits", 8, *flags(name), "--out", "m")
    evaluated = adsh("evaluate", "m", "--folds", 0, "--json").json
    assert evaluated["name"].startswith(f"{name}, ")
    assert evaluated["learned"]["map_expected"] > 0.2
    assert adsh("encode", "m", "digits", "--out", "c.npy", "--json").json["items"] == 1797
    assert np.load(tmp_path / "c.npy").shape == (1797, 1)
    shown = adsh("info", "m", "--json").json
    assert (shown["method"], shown["bits"], shown["points"], shown["source"]) == (name, 8, 1617, "digits")
    events = [json.loads(line)["event"] for line in (tmp_path / "m" / "log.jsonl").read_text().splitlines()]
    assert events[:2] == ["read", "start"]
    assert events[2:-1] == ["outer"] * (len(events) - 3)
    assert events[-1] == "saved"
    assert len(adsh("compare", "m/report", "m/report", "--json").json["rows"]) == 6


def test_a_run_is_repeated_by_its_own_file(adsh, tmp_path):
    adsh("train", "digits", "--method", "itq", "--bits", 8, "--options", "rounds=3", "--seed", 4, "--out", "m")
    again = adsh("train", "--config", "m/run.toml", "--out", "again", "--json").json
    assert (again["method"], again["outer"]) == ("itq", 3)
    assert (tmp_path / "m/arrays.safetensors").read_bytes() == (tmp_path / "again/arrays.safetensors").read_bytes()


def test_a_finished_one_is_left_alone_and_an_unfinished_one_starts_anew(adsh, refused):
    adsh("train", "digits", "--method", "lsh", "--bits", 8, "--out", "m")
    assert "holds a trained model" in refused("train", "digits", "--method", "lsh", "--bits", 8, "--out", "m")
    summary = adsh("train", "digits", "--method", "lsh", "--bits", 8, "--out", "m", "--resume", "--json").json
    assert summary["already_finished"]
    assert summary["was_complete"]
    assert "was trained with method lsh" in refused("train", "digits", "--method", "itq", "--out", "m", "--resume")
    assert "writes no checkpoints" in refused("train", "digits", "--method", "lsh", "--out", "new", "--resume")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "it"), "--method it: choose one of adsh, lsh"),
        (("--method", "itq", "--lr", 1), "itq has no --lr"),
        (("--method", "itq", "--network", "mlp", "--preset", "fast"), "itq has no --network, --preset"),
        (("--method", "itq", "--checkpoint-every", 1), "itq has no --checkpoint-every"),
        (("--method", "dsh", "--gamma", 1), "dsh has no --gamma"),
        (("--method", "itq", "--options", "rounds"), "give NAME=VALUE"),
        (("--method", "itq", "--options", "anchors=3"), "method 'itq' has no such option"),
        (("--method", "itq", "--bits", 500), "bits=500, but items have 192 feature(s)"),
        (("--method", "sdh", "--options", "anchors=5000"), "anchors=5000, but there are 1617 training items"),
        (("--options", "rounds=3"), "--options go with --method"),
    ],
)
def test_what_makes_no_sense_is_refused(refused, arguments, message):
    assert message in refused("train", "digits", *arguments, "--out", "m")


def test_the_protocol_says_whom_a_method_learns_from(adsh, refused, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(1400, 6)).astype(np.float32))
    np.save(tmp_path / "y.npy", np.arange(1400) % 2)
    run = ("train", "x.npy", "--labels", "y.npy", "--method", "lsh", "--bits", 4)
    assert adsh(*run, "--protocol", "59k", "--out", "m").status == 0
    assert "outside the database" in refused(*run, "--protocol", "54k", "--out", "n")
