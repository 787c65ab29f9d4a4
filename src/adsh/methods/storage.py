"""A fitted method as a folder, without any pickle.

config.json           format, name, bits, options, data, history, kinds of hash functions
arrays.safetensors    the database's codes and the hash functions
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from .. import __version__
from ..errors import AdshError, FolderError, NotFittedError, first_line
from ..hamming.bits import check_codes
from ..models.storage_format import (  # fmt: skip
    ARRAYS,
    CARD,
    CODES,
    CONFIG,
    METHOD_FORMAT,
    ROW_NUMBERS,
    WEIGHTS,
    check_others,
    forget,
)
from ..utils.files import check_writable, find_whole, replacing
from . import METHODS, create
from .base import Method
from .solvers.kernel import Kernel
from .solvers.ridge import Linear
from .solvers.trees import Trees

VERSION = 1

_KINDS: dict[str, Any] = {"linear": Linear, "kernel": Kernel, "trees": Trees}
_FUNCTIONS = ("hash_", "database_hash_")


def write(method: Method, folder: str | Path) -> None:
    """Saves a fitted method; the folder is written whole or not at all."""
    if not hasattr(method, "database_codes_"):
        raise NotFittedError(f"this {type(method).__name__} is not fitted yet: call fit")
    folder = Path(folder).resolve()
    arrays: dict[str, NDArray[Any]] = {"database_codes": method.database_codes_}
    kinds = {}
    for attribute in _FUNCTIONS:
        function: Any = getattr(method, attribute, None)
        if function is not None:
            kinds[attribute] = next(kind for kind, cls in _KINDS.items() if isinstance(function, cls))
            arrays |= {f"{attribute}.{name}": array for name, array in function.arrays().items()}
    description = {
        "format": METHOD_FORMAT,
        "version": VERSION,
        "adsh_version": __version__,
        "method": _full_name(method),
        "bits": int(method.bits),
        "options": options(method),
        "functions": kinds,
        "input_shape": list(method.input_shape_),
        "points": len(method.database_codes_),
        "data": method.fingerprint_,
        "history": method.history_,
        "seconds": method.seconds_,
    }
    text = json.dumps(description, indent=1, default=lambda value: value.item()) + "\n"
    packed = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    check_target(folder, len(packed) + len(text))
    with replacing(folder) as new:
        (new / ARRAYS).write_bytes(packed)
        (new / CONFIG).write_text(text, encoding="utf-8")
    forget(folder, WEIGHTS, CODES, ROW_NUMBERS, CARD)


def check_target(folder: Path, needed_bytes: int) -> None:
    """Raises where a method could not be saved to this folder."""
    check_others(folder.resolve())
    check_writable(folder, needed_bytes)


def load(folder: str | Path) -> Method:
    """The fitted method that was saved to this folder."""
    folder = find_whole(Path(folder))
    try:
        description = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        if description["format"] != METHOD_FORMAT or description["version"] != VERSION:
            found = f"{description['format']} {description['version']}"
            raise FolderError(
                f"{folder} is of format {found!r}, and this adsh reads {METHOD_FORMAT} {VERSION}: fit again"
            )
        method: Method = create(description["method"], bits=description["bits"], **description["options"])
        arrays = load_file(folder / ARRAYS)
        for attribute, kind in description["functions"].items():
            if attribute not in _FUNCTIONS:
                raise ValueError(f"unknown function {attribute}")
            prefix = f"{attribute}."
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            setattr(method, attribute, _KINDS[kind].from_arrays(own))
        method.database_codes_ = check_codes(arrays["database_codes"], method.bits)
        method.input_shape_, method.fingerprint_ = tuple(description["input_shape"]), dict(description["data"])
        method.history_, method.seconds_ = list(description["history"]), dict(description["seconds"])
    except FileNotFoundError:
        raise FolderError(f"{folder} holds no saved method: give the folder of a method's save") from None
    except AdshError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OSError, SafetensorError) as problem:
        reason = f"{type(problem).__name__}: {first_line(problem)}"
        raise FolderError(f"{folder} is not a whole saved method ({reason}): save or copy it again") from None
    return method


def options(method: Method) -> dict[str, Any]:
    """What the method was made with, besides its name and bits."""
    classes = [cls for cls in type(method).__mro__ if "__init__" in vars(cls) and issubclass(cls, Method)]
    given = [p for cls in classes for p in inspect.signature(cls.__init__).parameters.values()]
    names = {p.name for p in given if p.kind is inspect.Parameter.KEYWORD_ONLY} - {"whole", "progress"}
    return {name: getattr(method, name) for name in sorted(names)}


def _full_name(method: Method) -> str:
    name = f"{method.name}_d"
    return name if method.whole and name in METHODS else method.name
