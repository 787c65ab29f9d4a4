"""The methods that ADSH is compared with, one file each: `adsh.methods.create("lsh", bits=24)`.

`NAME_d` is the method `NAME` trained on the full database, whose learned codes are then the database's.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import InputError, first_line
from ..hamming.bits import DEFAULT_BITS
from ..models.registry import register_model
from ..models.storage import read_model

DEEP = (
    "dsh", "dsh_d", "dhn", "dhn_d", "dpsh", "dpsh_d", "dpsh_batch", "dpsh_batch_d", "classifier", "classifier_d",
)  # fmt: skip  # with a network
METHODS = (
    "lsh", "itq", "sdh", "sdh_d", "cosdish", "cosdish_d", "lfh", "lfh_d", "lfh_decay",
    "lfh_decay_d", "lin_v", "lin_lin", "fasth", *DEEP,
)  # fmt: skip


def create(name: str, *, bits: int = DEFAULT_BITS, **options: Any) -> Any:
    """Build a method by name: fit(Y, labels, train=indices), encode(X), database_codes_.

    Args:
        name: One of METHODS.
        bits: The code length.
        **options: Those of the method's class, `seed` among them.

    Returns:
        The method, not fitted yet.
    """
    if name not in METHODS:
        raise InputError(f"method {name!r}: choose one of {', '.join(METHODS)}")
    if name.endswith("_d"):
        options["use_full_database"] = True
    build = import_module(f".{name.removesuffix('_d')}", __name__).build
    try:
        return build(bits, **options)
    except TypeError as problem:  # constructors only store
        raise InputError(f"method {name!r} has no such option ({first_line(problem)}): see its class") from None


def load(folder: str | Path) -> Any:
    """Return the fitted method that was saved to the folder."""
    return read_model(Path(folder))


for _name in METHODS:
    register_model(_name, partial(create, _name))
