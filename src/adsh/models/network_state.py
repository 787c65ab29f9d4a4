"""What is saved of a model with a network; `storage` writes and reads the folder.

config.json          format version, parameters, recipe, history, names of the labels, digests of the files
model.safetensors    the network's weights
codes.safetensors    the distinct rows of codes, and what `code_for` needs
row_numbers.npy      (n,) the row of each database point
replay.safetensors   a few items of each label, which `update` learns from; left out where keep=0
familiarity.safetensors  statistics of the features, which say how familiar an item looks
README.md            the model card
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save as array_bytes
from safetensors.torch import load_file as load_tensors
from torch import nn

from .. import __version__
from ..config import Recipe
from ..data.npz import load_npy
from ..errors import AdshWarning, FolderError, InputError
from ..hamming.bits import bytes_for
from ..labels import LabelSets
from ..learn import LearnedCodes
from ..learn.familiarity import Familiarity
from ..learn.last_update import LastUpdate
from ..learn.learned_codes import NewLabels
from ..networks.restore import build_with_tensors, saved_options
from ..networks.traits import traits_of
from ..utils.device import DeviceChoice, choose_device
from ..utils.tensors import as_bytes
from ..utils.words import name_of
from . import storage
from .card import model_card
from .registry import build_model
from .replay import Replay
from .storage_format import CARD, CODES, FAMILIARITY, NETWORK_FORMAT, REPLAY, ROW_NUMBERS, WEIGHTS

if TYPE_CHECKING:
    from .deep_hash import DeepHash


def check_target(folder: Path, network: nn.Module, number_bytes: int) -> None:
    """Raise unless a model of this size can be saved to the folder.

    Args:
        folder: Where the model is to be saved.
        network: The network, for the size of its weights.
        number_bytes: The size of the row numbers.
    """
    weights = sum(t.numel() * t.element_size() for t in network.state_dict().values())
    storage.check_target(folder, weights + number_bytes + 1_000_000)


def save(model: DeepHash, folder: Path) -> None:
    """Save a fitted model to a folder."""
    row_numbers = model.code_table_.row_numbers
    check_target(folder, model.network_, row_numbers.nbytes)
    config = _config(model)
    more = {REPLAY: model.replay_, FAMILIARITY: model.familiarity_}
    storage.write_model(folder, NETWORK_FORMAT, config, {
        **{name: _array_writer(part.arrays()) for name, part in more.items() if part is not None},
        WEIGHTS: lambda path: path.write_bytes(as_bytes(model.network_.state_dict())),
        CODES: lambda path: path.write_bytes(array_bytes(_code_arrays(model))),
        ROW_NUMBERS: lambda path: np.save(path, row_numbers, allow_pickle=False),
        CARD: lambda path: path.write_text(model_card(config), encoding="utf-8"),
    })  # fmt: skip


def _array_writer(arrays: dict[str, NDArray[Any]]) -> Callable[[Path], Any]:
    """Return what writes arrays to a file."""
    return lambda path: path.write_bytes(array_bytes({name: np.ascontiguousarray(a) for name, a in arrays.items()}))


def restore(
    folder: Path, config: dict[str, Any], *, network: nn.Module | None = None, device: str | None = None
) -> DeepHash:
    """Return the fitted model that was saved to the folder.

    Args:
        folder: Where the model was saved.
        config: What its config.json says, checked.
        network: The user's own module that it was fitted with, where it was.
        device: Where to put the network; by default where it was trained.

    Returns:
        The model, on its device.
    """
    params = dict(config["params"])
    choice = _device(device, params["device"])
    model: DeepHash = build_model(config.get("method", "adsh"), **params)
    if device is not None:
        model.device = device
    if network is not None:
        model.network = network
    model.device_ = choice
    model.recipe_ = Recipe.load(config["recipe"])
    model.history_ = list(config["history"])
    model.input_shape_ = tuple(config["input_shape"])
    model.network_ = _network(model, folder, config, network).to(choice.device).eval()
    arrays = load_arrays(folder / CODES)
    row_numbers = load_npy(folder / ROW_NUMBERS)
    _check_codes(folder, arrays, row_numbers, model.bits)
    model.code_table_ = LearnedCodes(
        model.bits, arrays["rows.label_set"], arrays["rows.packed"], arrays["rows.count"], row_numbers
    )
    model._restore_labels(_new_labels(model.code_table_, arrays, config), config["labels"])
    model.fitted_params_, model.fingerprint_ = params, config.get("data", {})
    model.lineage_ = tuple(str(parent) for parent in config.get("lineage", ()))
    if REPLAY in config["files"]:
        model.replay_ = Replay.of(load_arrays(folder / REPLAY), len(row_numbers))
    if FAMILIARITY in config["files"]:
        model.familiarity_ = Familiarity.load(load_arrays(folder / FAMILIARITY))
    return model


def _check_codes(folder: Path, arrays: dict[str, NDArray[Any]], row_numbers: NDArray[Any], bits: int) -> None:
    """Raise unless every point has a row, and every row a code.

    Args:
        folder: Where they were read, for the error.
        arrays: Of codes.safetensors.
        row_numbers: (n,) of the points.
        bits: The code length.
    """
    packed = arrays["rows.packed"]
    rows = len(packed) if packed.ndim == 2 else -1
    same = arrays["rows.label_set"].shape == arrays["rows.count"].shape == (rows,)
    if not same or packed.shape[1] != bytes_for(bits) or packed.dtype != np.uint8:
        raise FolderError(f"{folder / CODES} does not hold codes of {bits} bits: save or copy the model again")
    if row_numbers.ndim != 1 or row_numbers.dtype.kind != "u":
        raise FolderError(f"{folder / ROW_NUMBERS} does not hold row numbers: save or copy the model again")
    if len(row_numbers) and int(row_numbers.max()) >= rows:
        raise FolderError(
            f"{folder / ROW_NUMBERS} holds {int(row_numbers.max())}, but there are {rows} rows of codes: save or copy "
            "the model again"
        )


def _device(requested: str | None, saved: str) -> DeviceChoice:
    """Return the requested device, else that of the fit; warn and choose another where this machine lacks it."""
    if requested is not None:
        return choose_device(requested)
    try:
        return choose_device(saved)
    except InputError:
        choice = choose_device("auto")
        warnings.warn(
            f"the model was fitted with device={saved!r}, which this machine does not have: {choice} is used",
            AdshWarning,
            stacklevel=5,
        )
        return choice


def _config(model: DeepHash) -> dict[str, Any]:
    """Return what config.json says of a model."""
    spec = traits_of(model.network_).spec
    params = {
        name: value.item() if isinstance(value, np.generic) else value for name, value in model.fitted_params_.items()
    }
    augment = params.pop("augment", None)  # a function is not saved; only its name
    params["device"] = str(params["device"])
    if params.get("network_options"):
        params["network_options"] = {
            name: str(value) if isinstance(value, Path) else value for name, value in params["network_options"].items()
        }
    if isinstance(params["network"], nn.Module):
        params["network"] = spec["name"] if spec else type(model.network_).__qualname__
    return {
        "format": NETWORK_FORMAT.name,
        NETWORK_FORMAT.version_key: NETWORK_FORMAT.version,
        "adsh_version": __version__,
        "method": model.name,
        "params": params,
        "network": spec,  # None: a module of the user's own
        "input_shape": list(model.input_shape_),
        "points": len(model.code_table_),
        "rows": len(model.code_table_.count),
        "recipe": model.recipe_.saved(),
        "data": model.fingerprint_,
        "trained_on": str(model.device_),
        "labels": model.label_names_,
        "history": model.history_,
        **({} if augment is None else {"augment": name_of(augment)}),
        **({"lineage": list(model.lineage_)} if model.lineage_ else {}),
        **({} if model.replay_ is None else {"kept": len(model.replay_)}),
    }


def _code_arrays(model: DeepHash) -> dict[str, NDArray[Any]]:
    """Return the arrays of codes.safetensors."""
    learned = model.code_table_
    arrays = {"rows.label_set": learned.label_set, "rows.packed": learned.packed, "rows.count": learned.count}
    new = model._new_labels
    if new is not None:
        arrays |= {
            "database.starts": new.database.starts,
            "database.tags": new.database.tags,
            "queries.starts": new.queries.starts,
            "queries.tags": new.queries.tags,
            **new.last.arrays(),
        }
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _network(model: DeepHash, folder: Path, config: dict[str, Any], module: nn.Module | None) -> nn.Module:
    """Return the network with its saved weights.

    Args:
        model: The model to build it for.
        folder: Where the weights are.
        config: What config.json says.
        module: The user's own module, where it was fitted with one.

    Returns:
        The network, still on the CPU.
    """
    spec, tensors = config["network"], load_tensors(folder / WEIGHTS)
    width = model._output_width(tensors)
    try:
        if module is not None:
            network = model._wrap_module(module, width)
            network.load_state_dict(tensors)
            return network
        if spec is None:
            name = config["params"]["network"]
            raise FolderError(f"the model was fitted with your own module, {name}: pass it as load(folder, network=…)")
        return build_with_tensors(
            lambda: model._build_network(spec["name"], config["input_shape"], saved_options(spec), width), tensors
        )
    except (RuntimeError, OverflowError) as problem:
        reason = str(problem).splitlines()[-1].strip()
        raise FolderError(f"the weights in {folder} do not fit the network: {reason}") from None


def _new_labels(learned: LearnedCodes, arrays: dict[str, NDArray[Any]], config: dict[str, Any]) -> NewLabels | None:
    """Return what `code_for` needs; None where the model has no codes for labels.

    Args:
        learned: The table of learned codes.
        arrays: Of codes.safetensors.
        config: What config.json says.

    Returns:
        The label sets and the last update of the codes, or None.
    """
    last = LastUpdate.of(arrays)
    if last is None:
        return None
    sides = {
        side: LabelSets.table(arrays[f"{side}.starts"], arrays[f"{side}.tags"], config["labels"][side])
        for side in ("database", "queries")
    }
    return NewLabels(learned, sides["database"], sides["queries"], last)
