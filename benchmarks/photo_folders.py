"""The first hour with folders of photographs: every command that a new user runs, timed, and the figures it prints.

    python benchmarks/photo_folders.py waste=photos/waste clothing=photos/clothing …      some minutes a folder

Each folder has a sub-folder per class, as it was downloaded. Two images of each class are put aside as the images that
arrive later. Then, with the settings that `adsh train` chooses by itself: `adsh data info`, `train`, `evaluate`,
`search --html`, `index add`, and one search over HTTP after `serve`. Nothing is tuned, and no class is left out.

Writes results/benchmarks/photo_folders.json; folders that are measured again replace their earlier figures.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import record

from adsh.client import Client
from adsh.data import open_source

NEAREST, LATER = 10, 2  # P@10; images of each class that arrive later
NAME = "photo_folders"


def main() -> None:
    path = record.ROOT / "results/benchmarks" / f"{NAME}.json"
    folders = json.loads(path.read_text())["figures"]["folders"] if path.exists() else {}
    for argument in sys.argv[1:]:
        name, _, folder = argument.partition("=")
        with tempfile.TemporaryDirectory(dir=Path(folder).parent) as scratch:
            folders[name] = walk(Path(folder), Path(scratch))
        print(name, json.dumps(folders[name], indent=1), flush=True)
    print(record.write(NAME, {"bits": 48, "folders": folders}))


def walk(folder: Path, scratch: Path) -> dict[str, Any]:
    """Run all commands on a folder.

    Args:
        folder: the images, in sub-folders by class.
        scratch: an empty folder on the same disk, for links to the images and for what is written.

    Returns:
        What the commands printed, and the seconds that each took.
    """
    photos, later = scratch / "photos", scratch / "later"
    query = put_aside(folder, photos, later)
    seconds: dict[str, float] = {}
    info, seconds["data info"] = timed("data", "info", photos, cwd=scratch)
    trained, seconds["train"] = timed("train", photos, "--out", "model", cwd=scratch)
    _, seconds["evaluate"] = timed("evaluate", "model", cwd=scratch)
    _, seconds["search --html"] = timed("search", "model/index", query, "--html", "found.html", cwd=scratch)
    added, seconds["index add"] = timed("index", "add", "model/index", later, "--prefix", "later/", cwd=scratch)
    seconds |= serve(scratch, query)
    (evaluation,) = json.loads((scratch / "model/report/report.json").read_text())["evaluations"]
    return {
        "images": info["items"], "classes": info["classes"], "queries": evaluation["queries"],
        "left_out": trained["read"].get("duplicates_removed", []), "added": added["added"],
        "seconds": {step: round(spent, 2) for step, spent in seconds.items()},
        "model": {name: figures(column) for name, column in evaluation["columns"].items()},
        "baselines": {
            baseline["name"]: {name: figures(column) for name, column in baseline["columns"].items()}
            for baseline in evaluation["baselines"]
        },
    }  # fmt: skip


def put_aside(folder: Path, photos: Path, later: Path) -> Path:
    """Link the images of a folder into two, those that are there and those that arrive later; return one of these."""
    source = open_source(str(folder))
    of_class: dict[int, list[str]] = defaultdict(list)
    for key, label in zip(source.keys, source.labels.ids, strict=True):
        of_class[int(label)].append(key)
    for keys in of_class.values():
        for at, key in enumerate(keys):
            target = (later if at < LATER else photos) / key
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(folder / key, target)
    return later / of_class[0][0]


def figures(column: dict[str, Any]) -> dict[str, float]:
    """Return MAP, the precision among the ten nearest, and chance, as far as a column has them."""
    found = {"MAP": column["map_expected"], "chance": column.get("chance")}
    if "precision" in column:
        found["P@10"] = column["precision"][column["ks"].index(NEAREST)]
    return {name: round(value, 4) for name, value in found.items() if value is not None}


def timed(*arguments: object, cwd: Path) -> tuple[dict[str, Any], float]:
    """Run a command as a process of its own; return its JSON, and the seconds it took."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "adsh", *map(str, arguments), "--json"]
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout), time.perf_counter() - started


def serve(scratch: Path, query: Path) -> dict[str, float]:
    """Return the seconds until the service is ready, and those of its second search by image."""
    command = [sys.executable, "-m", "adsh", "serve", "model", "--images", ".", "--port", "0", "--json", "--no-log"]
    started = time.perf_counter()
    with subprocess.Popen(command, cwd=scratch, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        while lines[-1] and not lines[-1].startswith("}"):
            lines.append(process.stdout.readline())
        ready = time.perf_counter() - started
        client = Client(json.loads("".join(lines))["url"])
        for _ in range(2):
            started = time.perf_counter()
            assert len(client.search(query.read_bytes(), k=NEAREST)["matches"]) == NEAREST
            spent = time.perf_counter() - started
        process.terminate()
    return {"serve": ready, "search over HTTP": spent}


if __name__ == "__main__":
    if shutil.which("git") is None or len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
