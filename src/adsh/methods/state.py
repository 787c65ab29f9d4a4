"""What is saved of a method on features; `models.storage` writes and reads the folder.

config.json           format, name, bits, options, data, history, kinds of hash functions
arrays.safetensors    the database's codes and the hash functions
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from safetensors.numpy import save as array_bytes

from .. import __version__
from ..hamming.bits import check_codes
from ..models.registry import build_model
from ..models.storage import check_target, write_model
from ..models.storage_format import ARRAYS, FUNCTION_FORMAT
from . import METHODS
from .hash_function import function_from_arrays

if TYPE_CHECKING:
    from .base import FeatureMethod

_CONFIG_BYTES = 100_000  # config.json takes less, but for a very long history


def save(method: FeatureMethod, folder: Path) -> None:
    """Save a fitted method to a folder."""
    functions = {"hash_": method.hash_, "database_hash_": method.database_hash_}
    learned = {attribute: function for attribute, function in functions.items() if function is not None}
    arrays: dict[str, NDArray[Any]] = {"database_codes": method.database_codes_}
    for attribute, function in learned.items():
        arrays |= {f"{attribute}.{name}": array for name, array in function.arrays().items()}
    packed = array_bytes({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    config = {
        "format": FUNCTION_FORMAT.name,
        FUNCTION_FORMAT.version_key: FUNCTION_FORMAT.version,
        "adsh_version": __version__,
        "method": _full_name(method),
        "bits": int(method.bits),
        "options": method.options,
        "functions": {attribute: function.kind for attribute, function in learned.items()},
        "input_shape": list(method.input_shape_),
        "points": len(method.database_codes_),
        "data": method.fingerprint_,
        "history": method.history_,
        "seconds": method.seconds_,
    }
    check_target(folder, len(packed) + _CONFIG_BYTES)
    write_model(folder, FUNCTION_FORMAT, config, {ARRAYS: lambda path: path.write_bytes(packed)})


def restore(folder: Path, config: dict[str, Any], **_: Any) -> FeatureMethod:
    """Return the fitted method that was saved to the folder; it has no network, and runs on the CPU."""
    method: FeatureMethod = build_model(config["method"], bits=config["bits"], **config["options"])
    arrays = load_file(folder / ARRAYS)
    for attribute, kind in config["functions"].items():
        if attribute not in ("hash_", "database_hash_"):
            raise ValueError(f"unknown function {attribute}")
        prefix = f"{attribute}."
        learned = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        setattr(method, attribute, function_from_arrays(kind, learned))
    method.database_codes_ = check_codes(arrays["database_codes"], method.bits)
    method.input_shape_, method.fingerprint_ = tuple(config["input_shape"]), dict(config["data"])
    method.history_, method.seconds_ = list(config["history"]), dict(config["seconds"])
    return method


def _full_name(method: FeatureMethod) -> str:
    """Return the name that `adsh.methods.create` builds this variant by."""
    name = f"{method.name}_d"
    return name if method.use_full_database and name in METHODS else method.name
