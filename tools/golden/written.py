"""Writes small folders with the code of the day, for a later day's tests to open: tests/golden/written."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import adsh

from .commands import environment, typed
from .data import blobs, multi_hot
from .parts import as_lists, codes

_FIT: dict[str, Any] = {"outer": 4, "samples": 40, "device": "cpu", "progress": False}
_MLP: dict[str, Any] = {**_FIT, "network_options": {"hidden": 48}}
RUN = ("train", "blobs.npz", "--bits", "12", "--outer", "6", "--checkpoint-every", "1", "--network", "linear",
       "--device", "cpu", "--out", "run")  # fmt: skip


def write_all(folder: Path) -> None:
    """Every folder, and expected.json and expected.npz beside them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    arrays: dict[str, np.ndarray] = {}
    items, labels = blobs(60)
    tagged, hot = multi_hot(60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", adsh.AdshWarning)
        models = {
            "model": adsh.ADSH(12, **_MLP).fit(items, np.array(["ash", "elm", "oak"])[labels]),
            "several-labels": adsh.ADSH(12, **_MLP).fit(tagged, hot),
            "itq": adsh.methods.create("itq", bits=8, progress=False).fit(items),
            "sdh": adsh.methods.create("sdh_d", bits=8, anchors=10, progress=False).fit(items, labels),
            "dpsh": adsh.methods.create("dpsh", bits=12, **_MLP).fit(items, labels),
        }
        for name, model in models.items():
            seen = tagged if name == "several-labels" else items
            model.save(folder / name)
            arrays |= {f"{name}.items": seen, f"{name}.database": model.database_codes_}
            arrays[f"{name}.new"] = model.encode(seen)
            if hasattr(model, "network_"):
                arrays[f"{name}.outputs"] = model.outputs(seen)
        arrays["model.for_labels"] = models["model"].code_for(["oak", "fir", "ash"])
        arrays["several-labels.for_labels"] = models["several-labels"].code_for(np.eye(5, dtype=int))
        found = _index(folder / "index")
        _export(folder)
        _report(folder)
        arrays |= _run(folder)
    np.savez_compressed(folder / "expected.npz", **arrays)
    text = json.dumps({"index": found}, indent=1, ensure_ascii=False) + "\n"
    (folder / "expected.json").write_text(text, encoding="utf-8")


def _index(folder: Path) -> dict[str, Any]:
    """An index that was added to, changed, taken from, made tidy and changed once more."""
    stored, queries = codes(80, 20, 0), codes(4, 20, 1)
    vectors = np.random.RandomState(2).randint(-64, 65, size=(80, 16)).astype(np.float32)
    keys = [f"item/{number:02} é" for number in range(80)]
    about = [{"class": "cat" if number % 3 else "dog", "year": 1990 + number % 20} for number in range(80)]
    with adsh.open_index(folder, bits=20, model="some model") as index:
        index.add(keys[:60], stored[:60], about[:60], vectors=vectors[:60])
        index.remove(keys[3:40:7])
        index.compact()
        index.add(keys[50:], stored[50:], about[50:], vectors=vectors[50:])
        index.remove(keys[60:64])
        index.note("where", "beside the sea")
        return {
            "keys": index.keys(),
            "asked": queries.tolist(),
            "vectors": vectors[:4].tolist(),
            "nearest": as_lists(index.search(queries, 6)),
            "where": as_lists(index.search(queries, 4, where={"class": "dog", "year": {"ge": 2000}})),
            "within": as_lists(index.within(queries, 5)),
            "reranked": as_lists(index.search(queries, 6, vectors=vectors[:4], rerank=True)),
        }


def _export(folder: Path) -> None:
    with TemporaryDirectory() as temporary:
        ended = typed(Path(temporary), "export", str((folder / "model").resolve()), "--out", "onnx", "--json")
        assert ended.returncode == 0, ended.stderr
        shutil.copytree(Path(temporary) / "onnx", folder / "onnx")


def _report(folder: Path) -> None:
    """report.json of an evaluation; the page and the figures beside it are large, and nobody reads them back."""
    model = adsh.load(folder / "model")
    items, labels = blobs(60)
    names = np.array(["ash", "elm", "oak"])[labels]
    evaluation = adsh.evaluate.evaluate_model(model, items[:12], names[:12], items, names, cases=0)
    with TemporaryDirectory() as temporary:
        adsh.evaluate.write_report([evaluation], Path(temporary) / "report")
        (folder / "report").mkdir()
        shutil.copy(Path(temporary) / "report/report.json", folder / "report/report.json")


def _run(folder: Path) -> dict[str, np.ndarray]:
    """A run of `adsh train` that was ended about half way, and the codes of one that was left alone."""
    features, labels = blobs()
    with TemporaryDirectory() as temporary:
        here = Path(temporary).resolve()
        np.savez(here / "blobs.npz", features=features, labels=labels)
        kept, run = here / "kept", here / "run"
        _stopped(here)
        run.rename(kept)
        ended = typed(here, *RUN, "--json")
        assert ended.returncode == 0, ended.stderr
        model = adsh.load(run)
        (folder / "run" / "checkpoints").mkdir(parents=True)
        for path in sorted(kept.rglob("*")):
            if path.suffix in (".toml", ".jsonl"):  # the folder it was made in is put back by the test
                text = path.read_text(encoding="utf-8").replace(str(here), "HERE")
                (folder / "run" / path.relative_to(kept)).write_text(text, encoding="utf-8")
            elif path.is_file():
                shutil.copy(path, folder / "run" / path.relative_to(kept))
        return {
            "run.features": features, "run.labels": labels, "run.database": model.database_codes_,
            "run.new": model.encode(features),
        }  # fmt: skip


def _stopped(here: Path) -> None:
    """`adsh train` in a process that ends as soon as the third checkpoint is there."""
    script = f"""
import os, sys, threading, time
from pathlib import Path
def watch():
    while not Path("run/checkpoints/checkpoint-000003.safetensors").exists():
        time.sleep(0.0005)
    os._exit(9)
threading.Thread(target=watch, daemon=True).start()
from adsh.cli import main
sys.argv = ["adsh", *{RUN!r}]
main()
"""
    subprocess.run([sys.executable, "-c", script], cwd=here, env=environment(), capture_output=True, check=False)
    assert not (here / "run/config.json").exists(), "the run ended before it was stopped: write again"
