"""A model as a folder: what is in it, how it is written, and how it is read back.

    config.json          format version, parameters, recipe, history, names of the labels, digests of the files
    model.safetensors    the network's weights
    codes.safetensors    the distinct rows of codes, and what `code_for` needs
    row_numbers.npy      (n,) the row of each database point
    README.md            the model card

No pickle anywhere. Written beside and renamed; each file's size and SHA-256 are checked when read.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save_file as save_arrays
from safetensors.torch import load_file as load_tensors
from safetensors.torch import save_file as save_tensors
from torch import nn

from . import __version__
from .config import Recipe
from .device import choose_device
from .errors import ModelFolderError
from .files import check_writable, digest, find_whole, replacing
from .learn import LabelSets, LearnedCodes
from .learn.code_table import LastUpdate
from .learn.learned_codes import NewLabels
from .model_card import model_card
from .networks import create_network

if TYPE_CHECKING:
    from .estimator import ADSH

FORMAT, FORMAT_VERSION = "adsh-model", 1
_CONFIG, _WEIGHTS, _CODES, _ROW_NUMBERS, _CARD = (
    "config.json", "model.safetensors", "codes.safetensors", "row_numbers.npy", "README.md",
)  # fmt: skip


def write(model: ADSH, folder: Path) -> None:
    """Saves a fitted model."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / _CONFIG).exists():
        raise ModelFolderError(f"{folder} holds other files and no {_CONFIG}: save to a new or empty folder")
    weights = {name: t.detach().cpu().contiguous() for name, t in model.network_.state_dict().items()}
    numbers = model.code_table_.row_numbers
    check_writable(folder, sum(t.numel() * t.element_size() for t in weights.values()) + numbers.nbytes + 1_000_000)
    with replacing(folder) as new:
        save_tensors(_unshared(weights), new / _WEIGHTS)
        save_arrays(_code_arrays(model), new / _CODES)
        np.save(new / _ROW_NUMBERS, numbers, allow_pickle=False)
        config = _config(model)
        (new / _CARD).write_text(model_card(config), encoding="utf-8")
        config["files"] = {
            path.name: {"bytes": path.stat().st_size, "sha256": digest(path)}
            for path in sorted(new.iterdir())
            if path.name != _CARD  # people edit their model cards
        }
        (new / _CONFIG).write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(folder: Path, *, network: nn.Module | None = None, device: str | None = None) -> ADSH:
    """The model in this folder."""
    from .estimator import ADSH

    folder = find_whole(folder)
    config = _checked_config(folder)
    try:
        params = config["params"]
        model = ADSH(
            **{
                **params,
                **({"device": device} if device else {}),
                **({"network": network} if network else {}),
            }
        )
        model.device_ = choose_device(model.device)
        model.recipe_ = Recipe(**config["recipe"])
        model.history_ = config["history"]
        model.input_shape_ = tuple(config["input_shape"])
        model.network_ = _network(folder, config, network).to(model.device_.device).eval()
        arrays = load_arrays(folder / _CODES)
        numbers = np.load(folder / _ROW_NUMBERS, mmap_mode="r", allow_pickle=False)
        model.code_table_ = LearnedCodes(
            model.bits, arrays["rows.label_set"], arrays["rows.packed"], arrays["rows.count"], numbers
        )
        model._new_labels = _new_labels(model.code_table_, arrays, config)
    except (KeyError, TypeError, ValueError, SafetensorError) as problem:
        raise ModelFolderError(f"{folder} is not a whole adsh model ({problem}): save or copy it again") from None
    return model


def _config(model: ADSH) -> dict[str, Any]:
    spec = getattr(model.network_, "adsh_spec", None)
    params = model.get_params()
    if isinstance(params["network"], nn.Module):
        params["network"] = spec["name"] if spec else type(model.network_).__qualname__
    names: dict[str, Any] = {}
    if model._new_labels is not None:
        names = {"database": model._new_labels.database.names, "queries": model._new_labels.queries.names}
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "adsh_version": __version__,
        "params": params,
        "network": spec,  # None: a module of the user's own
        "input_shape": list(model.input_shape_),
        "points": len(model.code_table_),
        "rows": len(model.code_table_.count),
        "recipe": asdict(model.recipe_),
        "trained_on": str(model.device_),
        "labels": names,
        "history": model.history_,
    }


def _code_arrays(model: ADSH) -> dict[str, NDArray[Any]]:
    learned = model.code_table_
    arrays = {"rows.label_set": learned.label_set, "rows.packed": learned.packed, "rows.count": learned.count}
    new = model._new_labels
    if new is not None:
        arrays |= {
            "database.starts": new.database.starts,
            "database.tags": new.database.tags,
            "queries.starts": new.queries.starts,
            "queries.tags": new.queries.tags,
            "last.gram": new.last.gram,
            "last.label_sets": new.last.label_sets,
            "last.sums": new.last.sums,
            "last.ratio": np.array([new.last.ratio]),
            "last.samples": np.array([new.last.samples]),
        }
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _checked_config(folder: Path) -> dict[str, Any]:
    """config.json, once it and the files it names are known to be whole and of a version this code reads."""
    if not folder.is_dir():
        raise ModelFolderError(f"{folder} is not a folder: give one that a model was saved in")
    try:
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ModelFolderError(f"{folder} has no {_CONFIG}: give a folder that a model was saved in") from None
    except (ValueError, OSError) as problem:
        raise ModelFolderError(f"{folder / _CONFIG} cannot be read ({problem}): save or copy the model again") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelFolderError(f"{folder / _CONFIG} is not an adsh model's: give a folder that a model was saved in")
    version = config.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelFolderError(
            f"{folder} has format version {version}, and adsh {__version__} reads up to {FORMAT_VERSION}: upgrade adsh"
        )
    for name in (_WEIGHTS, _CODES, _ROW_NUMBERS):
        path, expected = folder / name, config.get("files", {}).get(name, {})
        size = path.stat().st_size if path.exists() else None
        if size is None or size != expected.get("bytes"):
            found = "is missing" if size is None else f"has {size} bytes, not {expected.get('bytes')}"
            raise ModelFolderError(f"{path} {found}: save or copy the model again")
        if digest(path) != expected.get("sha256"):
            raise ModelFolderError(f"{path} is damaged, its digest is another: save or copy the model again")
    return config


def _network(folder: Path, config: dict[str, Any], given: nn.Module | None) -> nn.Module:
    spec = config["network"]
    if given is not None:
        network = given
    elif spec is None:
        name = config["params"]["network"]
        raise ModelFolderError(
            f"the model was fitted with a module of your own, {name}: load(folder, network=…) needs it"
        )
    else:
        network = create_network(spec["name"], config["params"]["bits"], config["input_shape"], **spec["options"])
    try:
        network.load_state_dict(load_tensors(folder / _WEIGHTS))
    except RuntimeError as problem:
        reason = str(problem).splitlines()[-1].strip()
        raise ModelFolderError(f"the weights in {folder} do not fit the network: {reason}") from None
    return network


def _new_labels(learned: LearnedCodes, arrays: dict[str, NDArray[Any]], config: dict[str, Any]) -> NewLabels | None:
    if "last.gram" not in arrays:
        return None
    sides = {
        side: LabelSets.table(arrays[f"{side}.starts"], arrays[f"{side}.tags"], config["labels"][side])
        for side in ("database", "queries")
    }
    last = LastUpdate(
        arrays["last.gram"],
        arrays["last.label_sets"],
        arrays["last.sums"],
        float(arrays["last.ratio"][0]),
        int(arrays["last.samples"][0]),
    )
    return NewLabels(learned, sides["database"], sides["queries"], last)


def _unshared(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies of tensors that share memory with an earlier one, which safetensors does not store."""
    seen: set[int] = set()
    for name, tensor in weights.items():
        if tensor.data_ptr() in seen:
            weights[name] = tensor.clone()
        seen.add(tensor.data_ptr())
    return weights
