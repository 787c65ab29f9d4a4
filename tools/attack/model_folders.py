"""Hostile folders of models: any value of config.json replaced by any other.

Loading takes little memory, opens no connection, and ends with a model or with an error of adsh.
"""

from __future__ import annotations

import copy
import json
import random
import resource
import socket
import sys
import time
import types
import warnings
from typing import Any
from unittest import mock

import adsh

from . import _parsers
from ._settings import Settings

_NASTY: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e308, 2**31, 2**63, 2**70, 10**13, "", "x" * 10_000, "../../etc/passwd", "\0"),
    *("timm:hf-hub:someone/network", "frozen:timm:hf-hub:x/y", "frozen:efficientnet_lite2", "vgg16", "pretrained"),
    *([], {}, [[[[]]]], {"weights": "/dev/zero"}, {"hidden": 1_300_000}, [10**9, 10**9, 3], {"a": {"b": {}}}),
]
_MOST = 1 << 30  # bytes that all of it may add to the process


def run(settings: Settings) -> dict[str, Any]:
    """Load a model whose config.json was changed in one to three places."""
    draw, until = random.Random(settings.seed), time.monotonic() + settings.seconds
    folder = _parsers.saved_model(settings.folder)
    original = (folder / "config.json").read_text()
    adsh.load(folder)  # what torch needs is loaded before the memory is counted
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    figures = {"folders": 0, "loaded": 0, "refused": 0}
    timm = types.SimpleNamespace(create_model=_fetch)
    with mock.patch.object(socket, "socket", _fetch), mock.patch.dict(sys.modules, {"timm": timm}):
        while figures["folders"] < settings.count and time.monotonic() < until:
            config = json.loads(original)
            for _ in range(draw.randrange(1, 4)):
                _change(config, draw)
            (folder / "config.json").write_text(json.dumps(config))
            figures["folders"] += 1
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    len(adsh.load(folder, device="cpu").database_codes_)
                figures["loaded"] += 1
            except adsh.AdshError:
                figures["refused"] += 1
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return {"held": more < _MOST, **figures, "more memory": more}


def _fetch(*given: Any, **_: Any) -> Any:
    raise AssertionError(f"something was to be fetched: {given}")


def _change(value: Any, draw: random.Random) -> None:
    """Replace a value somewhere in a config."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = draw.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and draw.random() < 0.8:
            value = inner
            continue
        value[key] = copy.deepcopy(draw.choice(_NASTY))
        return
