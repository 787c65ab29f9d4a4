"""What varies from run to run is taken out here, and here alone; what is left is digested.

Taken out: clocks (any key that tells seconds or a time), versions, the folder that the runs are made in, the random end
of a snapshot's name, the port of a service, the number of a request, and values of a recipe that were retired. Of pages
that people read, the words may change, and only the figures are compared. Everything else has to be equal.
"""

from __future__ import annotations

import json
import re
import sqlite3
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

VARIES = "<varies: "  # begins what stands for a value that is not compared, only its type
_CLOCKS = re.compile(r"second|\btime\b|^date$|^when$")
_VARYING_KEYS = {"adsh_version", "versions", "version", "machine", "commit", "cpu", "url", "pid", "port", "request_id"}
_TEXTS = {".toml", ".tex", ".txt", ".csv"}
_PAGES = {".md", ".html"}  # for people
_FIGURE = re.compile(r"(?<![\w.#-])\d*\.\d{3,}(?![\w.])")
_RETIRED = {"start_size", "start_share"}  # no preset used them
_IN_TEXT = (
    (re.compile(r"snapshot-(\d+)-[0-9a-f]{8}"), r"snapshot-\1-RANDOM"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z|[+-]\d\d:?\d\d)?"), "TIME"),
    (re.compile(r"(?<![\w.,])[\d.,]+ ?(µs|ms|s|seconds?|minutes?|hours?)\b"), "SECONDS"),
    (re.compile(r"(training[_ ]seconds(?:</dt><dd>| ))[\d.]+"), r"\1SECONDS"),
    (re.compile(r"torch \d[\w.+]*"), "torch VERSION"),
    (re.compile(r"(?m)^start_(size|share) = .*\n"), ""),
    (re.compile(r'(?m)^(adsh|adsh_version|version) = ".*"$'), r'\1 = "VERSION"'),
)


def varies(value: Any) -> str:
    """What stands for a value that is not compared."""
    kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
    return f"{VARIES}{kind}>"


def plain_text(text: str, here: Path | None = None) -> str:
    """Text without the folder of the runs, clocks, versions and random names."""
    from adsh import __version__

    if here is not None:
        text = text.replace(str(here.resolve()), "HERE").replace(str(here), "HERE")
    for pattern, instead in _IN_TEXT:
        text = pattern.sub(instead, text)
    return re.sub(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])", "VERSION", text)


def plain(value: Any, here: Path | None = None, key: str = "") -> Any:
    """The same for what came from JSON."""
    if isinstance(value, dict):
        if key in _VARYING_KEYS or _CLOCKS.search(key):
            return {name: varies(of) for name, of in value.items()}
        return {str(name): plain(of, here, str(name)) for name, of in value.items() if name not in _RETIRED}
    if isinstance(value, list | tuple):
        return [plain(of, here, key) for of in value]
    if value is not None and (key in _VARYING_KEYS or _CLOCKS.search(key)):
        return varies(value)
    if isinstance(value, np.generic):
        return plain(value.item(), here, key)
    return plain_text(value, here) if isinstance(value, str) else value


def digest(data: Any) -> str:
    """BLAKE2b of bytes, text, an array with its type and shape, or anything JSON can tell."""
    hasher = blake2b(digest_size=16)
    if isinstance(data, np.ndarray):
        hasher.update(f"{data.dtype.str} {data.shape}".encode())
        data = repr(data.tolist()) if data.dtype.hasobject else np.ascontiguousarray(data).tobytes()
    if not isinstance(data, str | bytes):
        data = json.dumps(data, sort_keys=True, ensure_ascii=False)
    hasher.update(data.encode() if isinstance(data, str) else data)
    return hasher.hexdigest()


def tensors_digest(tensors: dict[str, Any]) -> str:
    """Of named tensors of torch, in the order of their names."""
    arrays = {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    return digest({name: digest(arrays[name]) for name in sorted(arrays)})


def folder_digests(folder: Path, here: Path) -> dict[str, Any]:
    """Every file below a folder: its digest or, where a file is a JSON object, those of its keys."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-wal", "-shm")))
    return {plain_text(str(path.relative_to(folder))): _file(path, here) for path in paths}


def _file(path: Path, here: Path) -> Any:
    kind = path.suffix
    if kind == ".json":
        content = plain(json.loads(path.read_text(encoding="utf-8")), here)
        return {name: digest(of) for name, of in content.items()} if isinstance(content, dict) else digest(content)
    if kind == ".jsonl":
        lines = [plain(json.loads(line), here) for line in path.read_text(encoding="utf-8").splitlines()]
        return [{name: digest(of) for name, of in line.items()} for line in lines]
    if kind in _PAGES:
        return digest(sorted(set(_FIGURE.findall(plain_text(path.read_text(encoding="utf-8"), here)))))
    if kind in _TEXTS:
        return digest(plain_text(path.read_text(encoding="utf-8"), here))
    if kind == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return {name: digest(_strings(arrays[name], here)) for name in sorted(arrays)}
    if kind == ".npy":
        return digest(_strings(np.load(path, allow_pickle=False), here))
    if kind == ".safetensors":
        return _safetensors(path, here)
    if kind == ".db":
        return _tables(path, here)
    return digest(path.read_bytes())


def _strings(array: np.ndarray, here: Path) -> Any:
    """Arrays as they are, save texts that may tell of the folder of the runs."""
    return plain(array.tolist(), here) if array.dtype.kind == "U" else array


def _safetensors(path: Path, here: Path) -> str:
    """The tensors' bytes as they lie there, and the header without the clocks of a checkpoint's history."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    about = {name: _json_or_text(text, here) for name, text in header.pop("__metadata__", {}).items()}
    return digest({"tensors": header, "about": about, "bytes": digest(data[8 + length :])})


def _json_or_text(text: str, here: Path) -> Any:
    try:
        return plain(json.loads(text), here)
    except ValueError:
        return plain_text(text, here)


def _tables(path: Path, here: Path) -> dict[str, str]:
    """Each table of a SQLite file, row by row: its bytes hold counters of SQLite's own."""
    found = {}
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        for name, statement in connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall():
            rows = (
                [] if not str(statement).startswith("CREATE TABLE") else connection.execute(f'SELECT * FROM "{name}"')
            )
            plain_rows = [_row(row, here) for row in rows]
            found[str(name)] = digest({"made": statement, "rows": plain_rows})
    finally:
        connection.close()
    return found


def _row(row: tuple[Any, ...], here: Path) -> list[Any]:
    """A row as JSON; where it names a snapshot, whose name ends at random, without the checksum over that name."""
    texts = [value for value in map(_text, row) if isinstance(value, str)]
    named = any(_IN_TEXT[0][0].search(text) for text in texts)
    cells = [_json_or_text(value, here) if isinstance(value, str) else value for value in map(_text, row)]
    return [varies(cell) if named and isinstance(cell, int) else cell for cell in cells]


def _text(value: Any) -> Any:
    """Bytes as the text that they are or, where they are none, in hexadecimal."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.hex()
