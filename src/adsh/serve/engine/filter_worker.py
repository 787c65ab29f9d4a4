"""Search with a filter in a worker process: Python that compares metadata would keep the event loop waiting.

`to_message` and `search` are the two ends of the pipe. The worker opens the same folder, whose snapshot all processes
map together, and sees what others commit with its next search.
"""

from __future__ import annotations

import json
import time
import traceback
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ... import errors
from ...errors import AdshError, FolderError
from ...hamming.scan import faiss_module
from ...index import Index, open_index
from ...index.deadline import time_limit
from ...index.matches import StoredVectors
from ...search.searcher import Searcher, SearchOptions, SearchPlan
from .answers import answer_json

_MOVED = "moved"  # instead of an answer: the folder is no longer the index that the service has open


def to_message(plan: SearchPlan) -> tuple[dict[str, Any], bytes]:
    """Return a search of one query as the options and the payload of a job."""
    vectors = plan.vectors.small if isinstance(plan.vectors, StoredVectors) else plan.vectors
    arrays = [np.zeros(0, np.uint8) if one is None else one for one in (plan.codes, plan.outputs, vectors)]
    options = {
        "options": json.dumps(vars(plan.options)),  # orjson has no integers beyond 64 bits, and no NaN
        "arrays": [[one.dtype.str, one.size] for one in arrays],
        "keys": None if plan.keys is None else list(plan.keys),
        "familiarity": None if plan.familiarity is None else list(plan.familiarity),
    }
    return options, b"".join(one.tobytes() for one in arrays)


def search(options: dict[str, Any], payload: bytes) -> tuple[dict[str, Any], bytes]:
    """Run the search of a message, and return its answer for `read_answer`.

    Args:
        options: Those of the message; `folder` and `storage_id`, the index that the service has open; `seconds`, how
            long the search may take, and `own_time`, whether what other processes take from this one is not counted.
        payload: That of the message.
    """
    try:
        index = _opened(options["folder"], *options["storage_id"])
    except (AdshError, OSError):
        return {"error": _MOVED}, b""
    if "arrays" not in options:  # only to be ready for the next one
        faiss_module()
        return {}, b""
    try:
        plan = _plan(options, payload)
        with time_limit(options["seconds"], time.process_time if options["own_time"] else time.monotonic):
            return {}, answer_json(index, plan, Searcher(index).answer(plan)[0])
    except AdshError as problem:
        return {"error": type(problem).__name__, "text": str(problem)}, b""
    except Exception:
        return {"error": "RuntimeError", "text": traceback.format_exc()}, b""


def is_unopened(header: dict[str, Any]) -> bool:
    """Return whether the worker could not open the index that the service has open."""
    return header.get("error") == _MOVED


def read_answer(header: dict[str, Any], payload: bytes) -> bytes:
    """Return the JSON of an answer, or raise the error that it is."""
    if "error" in header:
        raise getattr(errors, header["error"], RuntimeError)(header["text"])
    return payload


@lru_cache(maxsize=1)
def _opened(folder: str, device: int, inode: int) -> Index:
    index = open_index(Path(folder))
    if index.storage_id() != (device, inode):
        index.close()
        raise FolderError(f"{folder} was moved or replaced")
    return index


def _plan(options: dict[str, Any], payload: bytes) -> SearchPlan:
    arrays, at = [], 0
    for dtype, size in options["arrays"]:
        array = np.frombuffer(payload, np.dtype(dtype), size, at)
        at += array.nbytes
        arrays.append(array[None] if size else None)
    codes, outputs, vectors = arrays
    assert codes is not None
    small = StoredVectors(vectors) if vectors is not None and vectors.dtype == np.int8 else vectors
    given = SearchOptions(**json.loads(options["options"]))
    return SearchPlan(given, codes, outputs, small, options["keys"], options["familiarity"])
