"""The command line: what each verb prints with --json, and every file it leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from .data import write_sources
from .normal import folder_digests, plain

_TRAIN = ("--bits", "12", "--outer", "3", "--device", "cpu")
# what the record calls it, what is typed, and the folders and files that are digested afterwards
COMMANDS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("data info", ("data", "info", "blobs.npz"), ()),
    ("data info, several labels", ("data", "info", "tags.npz"), ()),
    ("data info, photos", ("data", "info", "photos", "--sheet", "sheet.png"), ("sheet.png",)),
    ("train", ("train", "blobs.npz", *_TRAIN, "--checkpoint-every", "1", "--out", "model"), ("model",)),
    ("train, run again", ("train", "--config", "model/run.toml", "--out", "again"), ("again",)),
    ("train, finished", ("train", "blobs.npz", *_TRAIN, "--checkpoint-every", "1", "--out", "model", "--resume"), ()),
    ("train, parts", ("train", "blobs.npz", *_TRAIN, "--parts", "2", "--out", "parts"), ("parts",)),
    (
        "train, processes",
        ("train", "blobs.npz", *_TRAIN, "--parts", "2", "--processes", "2", "--out", "processes"),
        ("processes",),
    ),
    ("train, several labels", ("train", "tags.npz", *_TRAIN, "--split-seed", "3", "--out", "tags"), ("tags",)),
    ("train, photos", ("train", "photos", *_TRAIN, "--network", "tiny", "--out", "album"), ("album",)),
    ("train, frozen", ("train", "photos", *_TRAIN, "--network", "frozen:tiny", "--out", "ice"), ("ice",)),
    ("train, a method", ("train", "blobs.npz", "--method", "itq", "--bits", "6", "--out", "itq"), ("itq",)),
    ("train, a deep method", ("train", "blobs.npz", "--method", "dpsh", *_TRAIN, "--out", "dpsh"), ("dpsh",)),
    (
        "train, a method with options",
        ("train", "blobs.npz", "--method", "sdh_d", "--bits", "8", "--options", "anchors=20", "--out", "sdh"),
        ("sdh",),
    ),
    ("info", ("info", "model"), ()),
    ("info, a method", ("info", "itq"), ()),
    ("info, photos", ("info", "album"), ()),
    ("evaluate", ("evaluate", "model", "--cases", "2"), ("model/report",)),
    ("evaluate, a method", ("evaluate", "itq", "-k", "20", "--divisor", "min"), ("itq/report",)),
    ("evaluate, several labels", ("evaluate", "tags"), ()),
    ("compare", ("compare", "model/report", "itq/report", "--out", "both"), ("both",)),
    ("encode", ("encode", "model", "blobs.npz", "--out", "codes.npz"), ("codes.npz",)),
    ("encode, photos", ("encode", "album", "photos", "--out", "codes.npy"), ("codes.npy",)),
    (
        "features",
        ("features", "photos", "--network", "tiny", "--weights", "none", "--out", "seen/features.npy"),
        ("seen",),
    ),
    ("export", ("export", "model", "--out", "onnx"), ("onnx",)),
    ("export, photos", ("export", "album", "--out", "album-onnx"), ("album-onnx",)),
    ("export, a method", ("export", "itq", "--out", "itq-onnx"), ("itq-onnx",)),
    ("index build", ("index", "build", "built", "--model", "model"), ("built",)),
    ("index add", ("index", "add", "album/index", "photos", "--by-image", "--prefix", "new/"), ("album/index",)),
    ("index add, by label", ("index", "add", "built", "blobs.npz", "--by-label", "--prefix", "more/"), ("built",)),
    ("index remove", ("index", "remove", "album/index", "red/00.png", "nothing"), ()),
    ("index info", ("index", "info", "album/index"), ()),
    ("index verify", ("index", "verify", "album/index"), ()),
    ("index compact", ("index", "compact", "album/index"), ("album/index",)),
    ("index copy", ("index", "copy", "album/index", "copied"), ("copied",)),
    ("search", ("search", "album/index", "photos/red/03.png", "photos/blue/02.png", "-k", "4"), ()),
    ("search, within", ("search", "album", "photos/red/03.png", "--radius", "3", "--where", "class=red"), ()),
    ("search, asymmetric", ("search", "album", "photos/red/03.png", "--ranking", "asymmetric", "--no-rerank"), ()),
    (
        "reproduce",
        ("reproduce", "table1", "--dataset", "digits", "--bits", "12", "--method", "itq", "--out", "paper"),
        ("paper/table1.json", "paper/table1.md", "paper/table1.tex", "paper/cells"),
    ),
    ("demo", ("demo", "--out", "demo", "--bits", "12"), ("demo",)),
    ("doctor", ("doctor",), ()),
)
REFUSED: tuple[tuple[str, ...], ...] = (
    ("train", "nothing.npz"),
    ("train", "blobs.npz", "--bits", "0", "--out", "bad"),
    ("train", "blobs.npz", "--preset", "best", "--out", "bad"),
    ("train", "blobs.npz", "--method", "best", "--out", "bad"),
    ("train", "blobs.npz", "--network", "best", "--out", "bad"),
    ("train", "blobs.npz", *_TRAIN, "--out", "model"),
    ("info", "photos"),
    ("search", "nowhere", "photos/red/03.png"),
    ("index", "remove", "album/index", "nothing"),
    ("data", "get", "digits"),
    ("export", "photos"),
    ("bestow",),
)


def environment() -> dict[str, str]:
    """Of every command: one thread, and no data of this machine's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ADSH_")}
    return {**kept, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "COLUMNS": "100", "NO_COLOR": "1"}


def typed(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """adsh as typed in that folder."""
    command = [sys.executable, "-m", "adsh", *arguments]
    return subprocess.run(command, cwd=here, env=environment(), capture_output=True, text=True, check=False)


def run_commands(here: Path, only: str = "", strict: bool = False) -> dict[str, dict[str, Any]]:
    """What each prints and leaves: "json", "files", and the "refusals" of what cannot be done."""
    write_sources(here)
    printed: dict[str, Any] = {}
    files: dict[str, Any] = {}
    refusals: dict[str, Any] = {}
    for name, arguments, left in COMMANDS:
        if only and only not in name and arguments[0] != "train":  # others need what was trained
            continue
        ended = typed(here, *arguments, "--json")
        if ended.returncode:
            problem = f"adsh {' '.join(arguments)} ended with {ended.returncode}: {ended.stderr.strip()}"
            if strict:
                raise RuntimeError(problem)
            print(problem)
            continue
        printed[name] = plain(json.loads(ended.stdout), here)
        for path in left:
            found = here / path
            digests = folder_digests(found if found.is_dir() else found.parent, here)
            files[f"{name}: {path}"] = digests if found.is_dir() else digests.get(found.name)
    if not only:
        for arguments in REFUSED:
            ended = typed(here, *arguments)
            refusals[" ".join(arguments)] = plain([ended.returncode, ended.stderr.strip()], here)
        printed |= served(here)
    return {"json": printed, "files": files, "refusals": refusals}


def served(here: Path) -> dict[str, Any]:
    """What the service says when it starts, and what it answers a client."""
    from adsh.client import Client, ServiceError

    command = [sys.executable, "-m", "adsh", "serve", "album", "--port", "0", "--json", "--no-log"]
    process = subprocess.Popen(
        command, cwd=here, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or not lines[-1].startswith("}"):
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("adsh serve ended before it listened")
            lines.append(line)
        started = json.loads("".join(lines))
        image, answers = here / "photos/green/04.png", {}
        with Client(started["url"]) as client:
            answers["encode"] = client.encode(image)
            answers["search by picture"] = client.search(image, k=3)
            answers["search by key"] = client.search(key="new/blue/02.png", k=3, radius=4)
            answers["search by code"] = client.search(code=answers["encode"]["code"], k=2, filter={"class": "red"})
            answers["add"] = client.add("added", image, metadata={"class": "green"})
            answers["get"] = client.get("added")
            answers["get nothing"] = client.get("nothing")
            answers["remove"] = [client.remove("added"), client.remove("added")]
            answers["info"] = client.info()
            try:
                client.search(code="zz")
            except ServiceError as problem:
                answers["refused"] = [problem.status, str(problem)]
        return {"serve": plain(started, here)} | {f"serve: {name}": plain(of, here) for name, of in answers.items()}
    finally:
        process.terminate()
        process.wait(40)
