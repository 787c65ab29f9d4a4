"""Damaged files of an index: cut, overwritten, lengthened, and with blocks exchanged, at random.

The index answers as before, or refuses with an error of adsh; never a wrong answer, a crash or a hang.
"""

from __future__ import annotations

import random
import shutil
import time
import warnings
from pathlib import Path
from typing import Any

from tests.index.damage import killed_index, opened_contents

import adsh

from ._settings import Settings


def run(settings: Settings) -> dict[str, Any]:
    """Damage a file of an index, as a killed process left it or as it was closed, again and again."""
    draw, until = random.Random(settings.seed), time.monotonic() + settings.seconds
    killed, right = killed_index(settings.folder)
    folders = [killed, killed.with_name("index")]
    figures = {"damaged files": 0, "answered rightly": 0, "refused": 0}
    copy = settings.folder / "copy"
    while figures["damaged files"] < settings.count and time.monotonic() < until:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(draw.choice(folders), copy)
        path = draw.choice(sorted(copy.iterdir()))
        kind = _damage(path, draw)
        figures["damaged files"] += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = opened_contents(copy)
        except adsh.AdshError:
            figures["refused"] += 1
        else:
            assert found == right, f"a wrong answer after {kind} of {path.name}"
            figures["answered rightly"] += 1
    return {"held": True, **figures}


def _damage(path: Path, draw: random.Random) -> str:
    data = bytearray(path.read_bytes())
    kind = draw.choice(["a cut", "zeros", "noise", "a block twice", "blocks exchanged", "more at the end"])
    if kind == "a cut" or len(data) < 64:
        del data[draw.randrange(len(data) + 1) :]
    elif kind == "more at the end":
        data += draw.randbytes(draw.randrange(1, 5000))
    else:
        at, other = (draw.randrange(len(data)) for _ in range(2))
        length = draw.choice([1, 8, 512, 4096])
        block, there = bytes(data[at : at + length]), bytes(data[other : other + length])
        if kind == "zeros":
            data[at : at + length] = bytes(len(block))
        elif kind == "noise":
            data[at : at + length] = draw.randbytes(len(block))
        elif kind == "a block twice":
            data[other : other + length] = block[: len(there)]
        elif len(block) == len(there):
            data[at : at + length], data[other : other + length] = there, block
    path.write_bytes(bytes(data))
    return kind
