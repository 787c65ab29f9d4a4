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
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save as array_bytes
from safetensors.torch import load_file as load_tensors
from safetensors.torch import save as tensor_bytes
from torch import nn

from . import __version__
from .config import Recipe
from .device import DeviceChoice, choose_device
from .errors import AdshError, AdshWarning, FolderError, InputError, first_line
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


def check_target(folder: Path, network: nn.Module, number_bytes: int) -> None:
    """Raises where a model could not be saved to this folder."""
    folder = folder.resolve()
    if folder.is_dir() and any(folder.iterdir()):
        try:
            ours = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))["format"] == FORMAT
        except (OSError, ValueError, KeyError, TypeError):
            ours = False
        if not ours:
            raise FolderError(f"{folder} holds other files and no adsh model: save to a new or empty folder")
    weights = sum(t.numel() * t.element_size() for t in network.state_dict().values())
    check_writable(folder, weights + number_bytes + 1_000_000)


def write(model: ADSH, folder: Path) -> None:
    """Saves a fitted model."""
    numbers = model.code_table_.row_numbers
    check_target(folder, model.network_, numbers.nbytes)
    weights = {name: t.detach().cpu().contiguous() for name, t in model.network_.state_dict().items()}
    with replacing(folder) as new:
        (new / _WEIGHTS).write_bytes(tensor_bytes(_unshared(weights)))
        (new / _CODES).write_bytes(array_bytes(_code_arrays(model)))
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
        params = dict(config["params"])
        choice = _device(device, params["device"])
        model = ADSH(**params)
        if device is not None:
            model.device = device
        if network is not None:
            model.network = network
        model.device_ = choice
        model.recipe_ = Recipe(**config["recipe"])
        model.history_ = list(config["history"])
        model.input_shape_ = tuple(config["input_shape"])
        model.network_ = _network(folder, config, network).to(choice.device).eval()
        arrays = load_arrays(folder / _CODES)
        numbers = np.load(folder / _ROW_NUMBERS, mmap_mode="r", allow_pickle=False)
        model.code_table_ = LearnedCodes(
            model.bits, arrays["rows.label_set"], arrays["rows.packed"], arrays["rows.count"], numbers
        )
        model._new_labels = _new_labels(model.code_table_, arrays, config)
        model.fitted_params_ = params
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


def _config(model: ADSH) -> dict[str, Any]:
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
        raise FolderError(f"{folder} is not a folder: give one that a model was saved in")
    try:
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FolderError(f"{folder} has no {_CONFIG}: give a folder that a model was saved in") from None
    except (ValueError, OSError) as problem:
        raise FolderError(f"{folder / _CONFIG} cannot be read ({problem}): save or copy the model again") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise FolderError(f"{folder / _CONFIG} is not an adsh model's: give a folder that a model was saved in")
    version = config.get("format_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        advice = "upgrade adsh" if isinstance(version, int) and version > FORMAT_VERSION else "save the model again"
        raise FolderError(
            f"{folder} has format version {version!r}, and adsh {__version__} reads 1 to {FORMAT_VERSION}: {advice}"
        )
    for name in (_WEIGHTS, _CODES, _ROW_NUMBERS):
        path = folder / name
        try:
            expected = config["files"][name]
            size, wanted, right = path.stat().st_size, int(expected["bytes"]), str(expected["sha256"])
            found = f"has {size} bytes, not {wanted}" if size != wanted else ""
            if not found and digest(path) != right:
                found = "is damaged, its digest is another"
        except FileNotFoundError:
            found = "is missing"
        except (KeyError, TypeError, ValueError):
            found = f"is not described in {_CONFIG}"
        except OSError as problem:
            found = f"cannot be read ({problem.strerror})"
        if found:
            raise FolderError(f"{path} {found}: save or copy the model again")
    return config


def _network(folder: Path, config: dict[str, Any], given: nn.Module | None) -> nn.Module:
    spec = config["network"]
    if given is not None:
        network = given
    elif spec is None:
        name = config["params"]["network"]
        raise FolderError(f"the model was fitted with a module of your own, {name}: load(folder, network=…) needs it")
    else:
        network = create_network(spec["name"], config["params"]["bits"], config["input_shape"], **spec["options"])
    try:
        network.load_state_dict(load_tensors(folder / _WEIGHTS))
    except RuntimeError as problem:
        reason = str(problem).splitlines()[-1].strip()
        raise FolderError(f"the weights in {folder} do not fit the network: {reason}") from None
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
        memory = tensor.untyped_storage().data_ptr()
        if memory in seen:
            weights[name] = tensor.clone()
        seen.add(memory)
    return weights
