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
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save as array_bytes
from safetensors.torch import load_file as load_tensors
from torch import nn

from .. import __version__
from ..config import Recipe
from ..errors import AdshError, AdshWarning, FolderError, InputError, first_line
from ..learn import LabelSets, LearnedCodes
from ..learn.code_table import LastUpdate
from ..learn.learned_codes import NewLabels
from ..methods import create
from ..utils.device import DeviceChoice, choose_device
from ..utils.files import check_writable, digest, find_whole, replacing
from ..utils.tensors import as_bytes
from .card import model_card
from .storage_format import (  # fmt: skip
    ARRAYS,
    CARD,
    CODES,
    CONFIG,
    FORMAT,
    FORMAT_VERSION,
    METHOD_FORMAT,
    ROW_NUMBERS,
    WEIGHTS,
    check_others,
    checked_config,
    forget,
    kind_of,
)

if TYPE_CHECKING:
    from .deep_hash import DeepModel
    from .protocol import HashModel


def check_target(folder: Path, network: nn.Module, number_bytes: int) -> None:
    """Raises where a model could not be saved to this folder."""
    folder = folder.resolve()
    check_others(folder)
    weights = sum(t.numel() * t.element_size() for t in network.state_dict().values())
    check_writable(folder, weights + number_bytes + 1_000_000)


def write(model: DeepModel, folder: Path) -> None:
    """Saves a fitted model."""
    numbers = model.code_table_.row_numbers
    check_target(folder, model.network_, numbers.nbytes)
    with replacing(folder) as new:
        (new / WEIGHTS).write_bytes(as_bytes(model.network_.state_dict()))
        (new / CODES).write_bytes(array_bytes(_code_arrays(model)))
        np.save(new / ROW_NUMBERS, numbers, allow_pickle=False)
        config = _config(model)
        (new / CARD).write_text(model_card(config), encoding="utf-8")
        config["files"] = {
            path.name: {"bytes": path.stat().st_size, "sha256": digest(path)}
            for path in sorted(new.iterdir())
            if path.name != CARD  # people edit their model cards
        }
        (new / CONFIG).write_text(json.dumps(config, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    forget(folder, ARRAYS)


def read(folder: Path, *, network: nn.Module | None = None, device: str | None = None) -> HashModel:
    """The model in this folder."""
    if kind_of(folder) == METHOD_FORMAT:
        from ..methods.storage import load as read_method

        return read_method(folder)
    from .adsh import ADSH

    folder = find_whole(folder)
    config = checked_config(folder)
    try:
        params, method = dict(config["params"]), config.get("method", ADSH.name)
        choice = _device(device, params["device"])
        model: DeepModel = ADSH(**params) if method == ADSH.name else create(method, **params)
        if device is not None:
            model.device = device
        if network is not None:
            model.network = network
        model.device_ = choice
        model.recipe_ = Recipe(**config["recipe"])
        model.history_ = list(config["history"])
        model.input_shape_ = tuple(config["input_shape"])
        model.network_ = _network(model, folder, config, network).to(choice.device).eval()
        arrays = load_arrays(folder / CODES)
        numbers = np.load(folder / ROW_NUMBERS, mmap_mode="r", allow_pickle=False)
        model.code_table_ = LearnedCodes(
            model.bits, arrays["rows.label_set"], arrays["rows.packed"], arrays["rows.count"], numbers
        )
        model._restore(_new_labels(model.code_table_, arrays, config), config["labels"])
        model.fitted_params_, model.fingerprint_ = params, config.get("data", {})
    except AdshError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OSError, SafetensorError) as problem:
        reason = f"{type(problem).__name__}: {first_line(problem)}"
        raise FolderError(f"{folder} is not a whole adsh model ({reason}): save or copy it again") from None
    return model


def _device(wanted: str | None, saved: str) -> DeviceChoice:
    """The device asked for; else the one of the fit or, where that is not here, told, what there is."""
    if wanted is not None:
        return choose_device(wanted)
    try:
        return choose_device(saved)
    except InputError:
        choice = choose_device("auto")
        warnings.warn(
            f"the model was fitted with device={saved!r}, which is not here: {choice} is used",
            AdshWarning,
            stacklevel=4,
        )
        return choice


def _config(model: DeepModel) -> dict[str, Any]:
    spec = getattr(model.network_, "adsh_spec", None)
    params = {
        name: value.item() if isinstance(value, np.generic) else value for name, value in model.fitted_params_.items()
    }
    params["device"] = str(params["device"])
    if params.get("network_options"):
        params["network_options"] = {
            name: str(value) if isinstance(value, Path) else value for name, value in params["network_options"].items()
        }
    if isinstance(params["network"], nn.Module):
        params["network"] = spec["name"] if spec else type(model.network_).__qualname__
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "adsh_version": __version__,
        "method": model.name,
        "params": params,
        "network": spec,  # None: a module of the user's own
        "input_shape": list(model.input_shape_),
        "points": len(model.code_table_),
        "rows": len(model.code_table_.count),
        "recipe": asdict(model.recipe_),
        "data": model.fingerprint_,
        "trained_on": str(model.device_),
        "labels": model.label_names_,
        "history": model.history_,
    }


def _code_arrays(model: DeepModel) -> dict[str, NDArray[Any]]:
    learned = model.code_table_
    arrays = {"rows.label_set": learned.label_set, "rows.packed": learned.packed, "rows.count": learned.count}
    new = getattr(model, "_new_labels", None)
    if new is not None:
        arrays |= {
            "database.starts": new.database.starts,
            "database.tags": new.database.tags,
            "queries.starts": new.queries.starts,
            "queries.tags": new.queries.tags,
            **new.last.arrays(),
        }
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _network(model: DeepModel, folder: Path, config: dict[str, Any], given: nn.Module | None) -> nn.Module:
    spec, tensors = config["network"], load_tensors(folder / WEIGHTS)
    if given is not None:
        network = model._around(given, model._width(tensors))
    elif spec is None:
        name = config["params"]["network"]
        raise FolderError(f"the model was fitted with a module of your own, {name}: load(folder, network=…) needs it")
    else:
        network = model._built(spec["name"], config["input_shape"], spec["options"], model._width(tensors))
    try:
        network.load_state_dict(tensors)
    except RuntimeError as problem:
        reason = str(problem).splitlines()[-1].strip()
        raise FolderError(f"the weights in {folder} do not fit the network: {reason}") from None
    return network


def _new_labels(learned: LearnedCodes, arrays: dict[str, NDArray[Any]], config: dict[str, Any]) -> NewLabels | None:
    last = LastUpdate.of(arrays)
    if last is None:
        return None
    sides = {
        side: LabelSets.table(arrays[f"{side}.starts"], arrays[f"{side}.tags"], config["labels"][side])
        for side in ("database", "queries")
    }
    return NewLabels(learned, sides["database"], sides["queries"], last)
