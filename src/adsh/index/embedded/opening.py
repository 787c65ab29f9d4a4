"""Opening the database of an index: where it may be, and what it must be."""

from __future__ import annotations

from pathlib import Path

from ...errors import FolderError, InputError
from ...hamming.bits import check_bits
from ..header import About
from .store import DATABASE, State, Store


def open_store(folder: Path, bits: int | None, timeout: float) -> Store:
    """The database in this folder, which is made where it is missing and the bits are given."""
    if not (folder / DATABASE).exists():
        if folder.exists() and not folder.is_dir():
            raise FolderError(f"{folder} is a file: an index is a folder")
        if folder.is_dir() and any(folder.iterdir()):
            to_make = "" if bits is None else "; to make one, give a new or empty folder"
            raise FolderError(f"{folder} holds other files and no index: give the folder of one{to_make}")
        if bits is None:
            raise InputError(f"there is no index at {folder}: give bits= to make one")
        check_bits(bits)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise FolderError(f"cannot make {folder}: {problem.strerror}") from None
    return Store(folder, timeout)


def found_index(store: Store, bits: int | None, model: str | None) -> About:
    """What this index is, decided now where it is new; bits and model, where given, have to be its own."""
    if not store.is_made():
        if bits is None:
            raise InputError(f"{store.folder} holds no index yet: give bits= to make one")
        with store.writing():
            store.make_tables()
            if store.fact("about") is None:  # else another process was faster
                store.set_fact("about", About(check_bits(bits), model).to_json())
                store.set_state(State())
    about = _about(store)
    if bits is not None and check_bits(bits) != about.bits:
        raise InputError(
            f"bits={bits}, but {store.folder} holds codes of {about.bits} bits: open it with that, or none"
        )
    if model is not None and model != about.model:
        with store.writing():
            about = _about(store).with_model(model, store.state().items, store.folder)
            store.set_fact("about", about.to_json())
    return about


def _about(store: Store) -> About:
    with store.explained():
        return About.from_json(store.fact("about"), store.folder)
