"""Small seeded runs through the public names: what they learn and what they write."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import adsh

from .data import blobs, labelled_images, multi_hot
from .normal import digest, folder_digests, plain, tensors_digest

Found = dict[str, dict[str, Any]]  # "codes", "numbers" and "files", each name -> digest
CASES: dict[str, Callable[[Path], Found]] = {}
SMALL: dict[str, Any] = {"outer": 3, "samples": 40, "device": "cpu", "progress": False}


def case(make: Callable[[Path], Found]) -> Callable[[Path], Found]:
    """Lists a case under its function's name, in words."""
    CASES[make.__name__.replace("_", " ")] = make
    return make


def of_model(model: Any, items: Any, here: Path) -> Found:
    """All that a fitted model gives: codes apart from what is counted in floating point, and its saved folder."""
    codes = {"database": digest(model.database_codes_), "new items": digest(model.encode(items))}
    numbers: dict[str, Any] = {"history": digest(plain(model.history_))}
    if hasattr(model, "codes_and_features"):
        seen = model.codes_and_features(items)
        codes["with features"] = digest(seen[0])
        codes["rows"] = digest(model.code_table_.packed)
        codes["row numbers"] = digest(np.asarray(model.code_table_.row_numbers))
        numbers |= {
            "weights": tensors_digest(model.network_.state_dict()),
            "outputs": digest(model.outputs(items)),
            "features": digest(seen[1]) if seen[1] is not None else None,
            "params": {name: repr(value) for name, value in model.get_params().items()},
            "data": dict(model.fingerprint_),
        }
    folder = here / "saved"
    model.save(folder)
    again = adsh.load(folder)
    codes["loaded"] = digest(again.encode(items))
    assert codes["loaded"] == codes["new items"], "a loaded model codes otherwise than the one that was saved"
    return {"codes": codes, "numbers": numbers, "files": folder_digests(folder, here)}


def fitted(here: Path, items: Any, *data: Any, bits: int = 12, new: Any = None, fit: Any = None, **options: Any) -> Any:
    """An ADSH of so many bits fitted on this, and what it gives."""
    model = adsh.ADSH(bits, **{**SMALL, **options}).fit(items, *data, **(fit or {}))
    return model, of_model(model, items if new is None else new, here)


@case
def single_label(here: Path) -> Found:
    """Eq. (4) with an mlp, and codes for labels."""
    items, labels = blobs()
    model, found = fitted(here, items, labels, seed=3)
    found["codes"]["for labels"] = digest(model.code_for([0, 2, 1, 7]))
    return found


@case
def odd_bits_and_names(here: Path) -> Found:
    """Names for labels, and a length that fills no byte."""
    items, labels = blobs(60, classes=4)
    model, found = fitted(here, items, np.array(["ash", "elm", "oak", "yew"])[labels], bits=21, gamma=50.0, inner=2)
    found["codes"]["for labels"] = digest(model.code_for(["oak", "fir", "ash"]))
    return found


@case
def separate_queries(here: Path) -> Found:
    """Eq. (3)."""
    items, labels = blobs()
    queries, query_labels = blobs(45, seed=0)
    return fitted(here, items, labels, fit={"queries": queries, "query_labels": query_labels})[1]


@case
def similarity_of_all(here: Path) -> Found:
    """A given S, n x n."""
    items, labels = blobs(60)
    S = np.where(labels[:, None] == labels, 1, -1).astype(np.int8)
    return fitted(here, items, fit={"similarity": S})[1]


@case
def similarity_of_queries(here: Path) -> Found:
    """A given S, m x n."""
    items, labels = blobs(60)
    queries, query_labels = blobs(30)
    S = np.where(query_labels[:, None] == labels, 1, -1).astype(np.int8)
    return fitted(here, items, fit={"similarity": S, "queries": queries})[1]


@case
def several_labels(here: Path) -> Found:
    """A multi-hot array, and the same as collections of tags."""
    items, hot = multi_hot()
    model, found = fitted(here, items, hot)
    found["codes"]["for labels"] = digest(model.code_for(np.eye(5, dtype=int)))
    tags = [[f"tag{i}" for i in np.flatnonzero(row)] for row in hot]
    named = adsh.ADSH(12, **SMALL).fit(items, tags)
    found["codes"]["as tags"] = digest(named.database_codes_)
    found["codes"]["for tags"] = digest(named.code_for([["tag0", "tag3"], ["tag9"], ["tag2"]]))
    return found


def _preset(name: str) -> None:
    def make(here: Path) -> Found:
        items, labels = blobs()
        one = fitted(here / "one", items, labels, preset=name)[1]
        several = adsh.ADSH(24, **SMALL, preset=name).fit(*multi_hot())
        one["codes"]["several labels"] = digest(several.database_codes_)
        one["numbers"]["several labels"] = tensors_digest(several.network_.state_dict())
        return one

    make.__name__ = f"preset_{name}"
    case(make)


for _name in ("modern", "fast", "paper", "authors-matlab", "authors-pytorch"):
    _preset(_name)


@case
def linear(here: Path) -> Found:
    """The linear network."""
    return fitted(here, *blobs(), network="linear")[1]


@case
def all_values_of_a_recipe(here: Path) -> Found:
    """Averaged weights, a softer target, several sweeps, a schedule with a warm-up."""
    recipe = {"ema": 0.9, "soften": 0.25, "sweeps": 3, "warmup": 0.2, "schedule": "cosine", "head_lr": 3.0,
              "collect": "fresh", "signed": True, "codes_after": "epoch", "reshuffle": False}  # fmt: skip
    return fitted(here, *blobs(), bits=32, recipe=recipe, batch_size=16, lr=1e-3)[1]


@case
def tiny_images(here: Path) -> Found:
    """Images, as they are and with everything that changes them in training."""
    items, labels = labelled_images()
    found = fitted(here, items, labels, network="tiny")[1]
    recipe = {"flip": True, "shift": 0.125, "crop": 0.5, "mirror": True, "ema": 0.9}
    other = fitted(here / "other", items, labels, network="tiny", recipe=recipe)[1]
    return {group: {"plain": found[group], "augmented": other[group]} for group in found}


@case
def resized_images(here: Path) -> Found:
    """A network that resizes its images, smaller ones first."""
    recipe = {"size": 48, "enlarge": "bicubic", "centre": 0.875, "head_std": 0.01, "fixed": 2}
    options = {"weights": None}
    return fitted(here, *labelled_images(12), network="efficientnet_lite0", network_options=options, recipe=recipe)[1]


@case
def frozen_network(here: Path) -> Found:
    """An mlp on what another network sees."""
    items, labels = labelled_images()
    return fitted(here, items, labels, network="frozen:tiny", network_options={"hidden": 32})[1]


@case
def frozen_pretrained_network(here: Path) -> Found:
    """The same on weights that came with a package."""
    items, labels = labelled_images(12)
    options = {"hidden": 16, "size": 32}
    model = adsh.ADSH(8, network="frozen:efficientnet_lite0", network_options=options, **SMALL).fit(items, labels)
    codes = {"database": digest(model.database_codes_), "again": digest(model.encode_database(items))}
    numbers = {"weights": tensors_digest(model.network_.state_dict()), "features": digest(model.features_)}
    return {"codes": codes, "numbers": numbers, "files": {}}


def _unlabelled(way: str) -> None:
    def make(here: Path) -> Found:
        items, labels = blobs()
        labels = np.where(np.arange(len(labels)) % 5 == 0, -1, labels)
        return fitted(here, items, labels, unlabelled=way)[1]

    make.__name__ = f"unlabelled_{way}"
    case(make)


_unlabelled("network")
_unlabelled("dissimilar")

_SHALLOW: dict[str, dict[str, Any]] = {
    "lsh": {}, "itq": {"rounds": 5}, "sdh": {"anchors": 20}, "sdh_d": {"anchors": 20}, "lfh": {"rounds": 4},
    "lfh_d": {"rounds": 4}, "cosdish": {"rounds": 3}, "cosdish_d": {"rounds": 3}, "fasth": {},
    "lin_v": SMALL, "lin_lin": SMALL,
}  # fmt: skip
_DEEP = ("dsh", "dhn", "dpsh", "classifier", "dsh_d", "dhn_d", "dpsh_d", "classifier_d")


def _method(name: str) -> None:
    def make(here: Path) -> Found:
        items, labels = blobs()
        given = dict(_SHALLOW.get(name, SMALL))
        try:
            model = adsh.methods.create(name, bits=8, seed=1, **{**given, "progress": False})
        except adsh.AdshError:
            given = {key: value for key, value in given.items() if key not in SMALL}
            model = adsh.methods.create(name, bits=8, seed=1, progress=False, **given)
        model.fit(items, labels, train=np.arange(0, 90, 2))
        return of_model(model, items[:20], here)

    make.__name__ = f"method_{name}"
    case(make)


for _name in (*_SHALLOW, *_DEEP):
    _method(_name)


class _Stop(Exception):
    """Raised by a callback that has seen enough."""


@case
def resumed(here: Path) -> Found:
    """Stopped after two outer iterations and gone on with, to the end of one that never stopped."""
    items, labels = blobs()
    recipe = {"ema": 0.9}
    whole = adsh.ADSH(12, **{**SMALL, "outer": 5}, recipe=recipe).fit(items, labels)

    def stop(record: dict[str, Any]) -> None:
        if record["outer"] == 3:
            raise _Stop

    model = adsh.ADSH(12, **{**SMALL, "outer": 5}, recipe=recipe)
    try:
        model.fit(items, labels, checkpoints=here / "kept", callback=stop)
    except _Stop:
        files = folder_digests(here / "kept", here)
    model.fit(items, labels, checkpoints=here / "kept", resume=True)
    found = of_model(model, items, here)
    assert found["numbers"]["weights"] == tensors_digest(whole.network_.state_dict()), "resumed to other weights"
    assert found["codes"]["database"] == digest(whole.database_codes_), "resumed to other codes"
    return found | {"files": {"when stopped": files, "at the end": folder_digests(here / "kept", here)}}


def run_cases(here: Path, only: str = "", strict: bool = False) -> dict[str, Found]:
    """Every case, each in a folder of its own; one that fails is reported, and counts as missing, unless `strict`."""
    import torch

    from . import parts  # noqa: F401  # lists the cases of the parts that need no training

    torch.set_num_threads(1)
    found = {}
    for name, make in CASES.items():
        if only and only not in name:
            continue
        folder = here / name.replace(" ", "-")
        for directory in (folder, folder / "one", folder / "other"):
            directory.mkdir(parents=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", adsh.AdshWarning)
            try:
                found[name] = make(folder)
            except Exception:
                if strict:
                    raise
                print(f"{name} failed: {traceback.format_exc(limit=-3)}")
    return found
