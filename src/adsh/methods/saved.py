"""A fitted method as a folder, without any pickle.

method.json           format, name, bits, options, history, kinds of hash functions
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

from ..errors import AdshError, FolderError, NotFittedError, first_line
from ..files import check_writable, find_whole, replacing
from ..hamming.bits import check_codes
from . import METHODS, create
from .base import Method
from .kernel import Kernel
from .ridge import Linear
from .trees import Trees

FORMAT = "adsh method"
VERSION = 1
DESCRIPTION, ARRAYS = "method.json", "arrays.safetensors"

_KINDS: dict[str, Any] = {"linear": Linear, "kernel": Kernel, "trees": Trees}
_FUNCTIONS = ("hash_", "database_hash_")


def write(method: Method, folder: str | Path) -> None:
    """Saves a fitted method; the folder is written whole or not at all."""
    if not hasattr(method, "database_codes_"):
        raise NotFittedError(f"this {type(method).__name__} is not fitted yet: call fit")
    folder = Path(folder).resolve()
    if folder.is_dir() and any(folder.iterdir()) and not (folder / DESCRIPTION).exists():
        raise FolderError(f"{folder} holds other files and no saved method: save to a new or empty folder")
    arrays: dict[str, NDArray[Any]] = {"database_codes": method.database_codes_}
    kinds = {}
    for attribute in _FUNCTIONS:
        function: Any = getattr(method, attribute, None)
        if function is not None:
            kinds[attribute] = next(kind for kind, cls in _KINDS.items() if isinstance(function, cls))
            arrays |= {f"{attribute}.{name}": array for name, array in function.arrays().items()}
    description = {
        "format": FORMAT,
        "version": VERSION,
        "method": _full_name(method),
        "bits": int(method.bits),
        "options": options(method),
        "functions": kinds,
        "history": method.history_,
        "seconds": method.seconds_,
    }
    text = json.dumps(description, indent=1, default=lambda value: value.item()) + "\n"
    packed = save({name: np.ascontiguousarray(array) for name, array in arrays.items()})
    check_writable(folder, len(packed) + len(text))
    with replacing(folder) as new:
        (new / ARRAYS).write_bytes(packed)
        (new / DESCRIPTION).write_text(text, encoding="utf-8")


def load(folder: str | Path) -> Any:
    """The fitted method that was saved to this folder."""
    folder = find_whole(Path(folder))
    try:
        description = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        if description["format"] != FORMAT or description["version"] != VERSION:
            found = f"{description['format']} {description['version']}"
            raise FolderError(f"{folder} is of format {found!r}, and this adsh reads {FORMAT} {VERSION}: fit again")
        method = create(description["method"], bits=description["bits"], **description["options"])
        arrays = load_file(folder / ARRAYS)
        for attribute, kind in description["functions"].items():
            if attribute not in _FUNCTIONS:
                raise ValueError(f"unknown function {attribute}")
            prefix = f"{attribute}."
            own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
            setattr(method, attribute, _KINDS[kind].from_arrays(own))
        method.database_codes_ = check_codes(arrays["database_codes"], method.bits)
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
    names = {p.name for p in given if p.kind is inspect.Parameter.KEYWORD_ONLY} - {"whole"}
    return {name: getattr(method, name) for name in sorted(names)}


def _full_name(method: Method) -> str:
    name = f"{method.name}_d"
    return name if method.whole and name in METHODS else method.name
