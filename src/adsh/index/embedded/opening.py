"""Open the database of an index in a folder, or create it."""

from __future__ import annotations

from pathlib import Path

from ...errors import FolderError, InputError
from ...hamming.bits import check_bits
from ...models.fingerprint import ModelId
from ..header import HEADER, Header, no_index
from .database import COMMITS, DATABASE, State
from .store import Store


def open_store(folder: Path, bits: int | None, timeout: float) -> Store:
    """Open the database in a folder; create both if they are missing.

    Args:
        folder: the folder of the index.
        bits: the length of the codes; None to open an existing index only.
        timeout: how many seconds a write waits for another process's.

    Returns:
        The open database.

    Raises:
        FolderError: the folder is a file, or holds something else.
        InputError: there is no index, and no bits to create one with.
    """
    if not (folder / DATABASE).exists():
        if folder.exists() and not folder.is_dir():
            raise FolderError(f"{folder} is a file: an index is a folder")
        # the file of commits is created first: by another process that creates this index, perhaps at this moment
        if (
            folder.is_dir()
            and any(path.name != COMMITS for path in folder.iterdir())
            and not (folder / DATABASE).exists()
        ):
            advice = "" if bits is None else "; to create one, give a new or empty folder"
            raise FolderError(f"{folder} holds other files and no index: give the folder of one{advice}")
        if bits is None:
            raise no_index(folder)
        check_bits(bits)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise FolderError(f"cannot create {folder}: {problem.strerror}") from None
    return Store(folder, timeout)


def create_or_open(store: Store, bits: int | None, model: ModelId | None) -> Header:
    """Return the header of the index in this database, which is written now if the index is new.

    Args:
        store: the database.
        bits: the length of the codes; None for that of the existing index.
        model: the model that computes the codes; None if it is not known.

    Returns:
        The header as it is stored now.

    Raises:
        InputError: the index has other bits or another model, or there is none and no bits to create one with.
    """
    if not store.is_initialized():
        if bits is None:
            raise InputError(f"{store.folder} holds no index yet: give bits= to create one")
        with store.writing():
            store.create_tables()
            if store.fact(HEADER) is None:  # else another process was faster
                store.set_fact(HEADER, Header.new(check_bits(bits), model).to_json())
                store.set_state(State())
    header = read_header(store)
    header.check_bits(bits, store.folder)
    if model is not None and model.fingerprint != header.model:
        with store.writing():
            header = read_header(store).with_model(model, store.state().items, store.folder)
            store.set_fact(HEADER, header.to_json())
    return header


def read_header(store: Store) -> Header:
    """Return the header as it is stored; within a transaction of the caller, or outside of any."""
    with store.translated_errors():
        return Header.from_json(store.fact(HEADER), store.folder)
