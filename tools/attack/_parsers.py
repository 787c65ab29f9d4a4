"""Every parser of what strangers send, as a function of bytes, with examples to start from.

A function may return, or raise an error of adsh or a Problem of the service: one line for the user. Anything else is a
finding. Where two ways must agree, it raises AssertionError if they do not.
"""

from __future__ import annotations

import io
import json
import pickle
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

Parser = Callable[[bytes], object]


@contextmanager
def parser(name: str) -> Iterator[tuple[Parser, list[bytes]]]:
    """Yield the parser of this name and its examples."""
    with tempfile.TemporaryDirectory(prefix="adsh-fuzz-", dir=_quick_folder()) as folder:
        yield PARSERS[name](Path(folder))


def _quick_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _of_file(path: Path, read: Callable[[Path], object]) -> Parser:
    """A parser of a file, which is written first."""

    def parse(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return parse


def _image(folder: Path) -> tuple[Parser, list[bytes]]:
    from tests.serve.mutations import valid_images

    from adsh.data.images.decode import decode

    examples = [data for data in valid_images().values() if len(data) < 20_000]
    return lambda data: decode(data, most_pixels=200_000), examples


def _search_body(folder: Path) -> tuple[Parser, list[bytes]]:
    from adsh.serve.http.json_limits import SMALL_BODY
    from adsh.serve.http.schemas import SearchRequest, parse_json

    examples = [b'{"code": "a1b2c3", "k": 7, "filter": {"class": "red", "n": {"ge": 1.5, "in": [1, "a", null]}}}',
                b'{"key": "a \\u00e9", "radius": 3, "ranking": "hamming", "rerank": false}']  # fmt: skip
    return lambda data: parse_json(SearchRequest, data, SMALL_BODY).options(), examples


def _items_body(folder: Path) -> tuple[Parser, list[bytes]]:
    from adsh.serve.http.item_batch import parse_batch

    options = {"bits": 24, "max_bytes": 1 << 16, "max_items": 10}
    examples = [b'{"items": [{"key": "a", "code": "a1b2c3", "metadata": {"n": 1e3}}, {"key": "b", "code": "000000"}]}']
    return lambda data: parse_batch(options, data), examples


def _filter(folder: Path) -> tuple[Parser, list[bytes]]:
    """A filter, and the metadata that it is applied to: by columns and by JSON, which must agree."""
    from adsh.errors import InputError
    from adsh.index.embedded.filter_results import FilterResults
    from adsh.index.filters import Filter
    from adsh.index.number_columns import NumberColumns
    from adsh.index.text_column import TextColumn
    from adsh.index.validation import metadata_texts
    from adsh.search.query_parsing import parse_conditions
    from adsh.utils.reading import parse_json

    def parse(data: bytes) -> object:
        try:
            where, *metadata = parse_json(data)
        except (ValueError, TypeError) as problem:
            parse_conditions([data.decode(errors="replace")])
            raise InputError(str(problem)) from None
        condition = Filter(where)
        texts = metadata_texts(metadata, len(metadata)) or []
        if not texts:
            return None
        column = TextColumn.of(texts)
        numbers = NumberColumns(column)
        numbers.columns()
        found = FilterResults(condition, column, numbers).accepted(np.arange(len(texts))).tolist()
        assert found == [condition.accepts(text.decode()) for text in texts], "columns and JSON differ"
        return found

    examples = [b'[{"a": {"ge": 1, "lt": 9007199254740993}, "b": "x"}, {"a": 3, "b": ["x", 1]}, {"a": null}, {}]',
                b'[{"a": {"in": [1, 2.5, "z", null, true], "ne": 2}}, {"a": 1}, {"a": true}, {"a": 1e400}]',
                b"year>=2000", b"class=cat"]  # fmt: skip
    return parse, examples


def _manifest(suffix: str, examples: list[bytes]) -> Callable[[Path], tuple[Parser, list[bytes]]]:
    def build(folder: Path) -> tuple[Parser, list[bytes]]:
        from adsh.data import open_source

        return _of_file(folder / f"list{suffix}", lambda path: open_source(str(path))), examples

    return build


def _coco(folder: Path) -> tuple[Parser, list[bytes]]:
    from adsh.data.sources.coco import open_coco

    (folder / "annotations").mkdir()
    (folder / "a2014").mkdir()
    (folder / "a2014" / "1.jpg").write_bytes(b"")
    content = {"images": [{"id": 1, "file_name": "1.jpg"}], "categories": [{"id": 3, "name": "dog"}],
               "annotations": [{"image_id": 1, "category_id": 3}]}  # fmt: skip
    return _of_file(folder / "annotations" / "instances_a2014.json", open_coco), [json.dumps(content).encode()]


def _npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npy_file(folder: Path) -> tuple[Parser, list[bytes]]:
    from adsh.data import open_source

    examples = [_npy(np.zeros((3, 2), dtype)) for dtype in (np.float32, np.uint8, np.int64)] + [
        _npy(np.array(["a", "b"]))
    ]
    return _of_file(folder / "x.npy", lambda path: open_source(str(path))), examples


def _npz_file(folder: Path) -> tuple[Parser, list[bytes]]:
    from adsh.data import Split, open_source
    from adsh.errors import AdshError
    from adsh.networks.weights import read_tensors

    def read(path: Path) -> None:
        for one in (lambda: open_source(str(path)), lambda: Split.load(path), lambda: read_tensors(path)):
            with suppress(AdshError):
                one()

    files = []
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, features=np.zeros((3, 2), np.float32), labels=np.array([0, 1, 1]))
        files.append(file.getvalue())
    file = io.BytesIO()
    part = np.arange(3)
    np.savez_compressed(file, protocol="all", seed=0, queries=part, database=part, validation=part[:0], training=part)
    return _of_file(folder / "x.npz", read), [*files, file.getvalue()]


def _npz_member(folder: Path) -> tuple[Parser, list[bytes]]:
    """The array inside an archive that is itself in order."""
    from adsh.data import open_source

    def parse(data: bytes) -> object:
        with zipfile.ZipFile(folder / "x.npz", "w", zipfile.ZIP_DEFLATED if data[:1] == b"z" else 0) as archive:
            archive.writestr("features.npy", data[1:])
        return open_source(str(folder / "x.npz"))

    return parse, [kind + _npy(np.zeros((2, 3), np.float32)) for kind in (b"z", b"s")]


def _toml(folder: Path) -> tuple[Parser, list[bytes]]:
    from adsh.runs.settings import TrainSettings

    example = b'[train]\nsource = "digits"\nbits = 12\nnetwork = "mlp"\nseed = 3\n[train.network_options]\nhidden = 4\n'
    return _of_file(folder / "run.toml", lambda path: TrainSettings.resolve({}, path, None, resume=False)), [example]


def _batch_pickle(folder: Path) -> tuple[Parser, list[bytes]]:
    from adsh.data.sources.batch_pickle import read_batch

    batch = {b"labels": [1, 2], b"data": np.zeros((2, 3), np.uint8), b"filenames": [b"a", b"b"]}
    return lambda data: read_batch(data, "batch"), [pickle.dumps(batch, protocol) for protocol in (2, 4)]


def saved_model(folder: Path) -> Path:
    """Save a small model to a folder below this one, and return where."""
    import adsh

    rng = np.random.default_rng(0)
    model = adsh.ADSH(
        8, network="mlp", network_options={"hidden": 4}, outer=1, samples=20, device="cpu", progress=False
    )
    model.fit(rng.normal(size=(30, 3)).astype(np.float32), np.arange(30) % 2, save_to=folder / "model")
    return folder / "model"


def _config(folder: Path) -> tuple[Parser, list[bytes]]:
    import adsh
    from adsh.errors import AdshError
    from adsh.models.info import model_info

    saved = saved_model(folder)
    example = (saved / "config.json").read_bytes()

    def read(path: Path) -> None:
        for one in (adsh.load, model_info):
            with suppress(AdshError):
                one(path.parent)

    return _of_file(saved / "config.json", read), [json.dumps(json.loads(example)).encode(), example]


def _row_numbers(folder: Path) -> tuple[Parser, list[bytes]]:
    """The row numbers of a model whose config.json describes them rightly."""
    import hashlib

    import adsh

    saved = saved_model(folder)
    config = json.loads((saved / "config.json").read_text())

    def parse(data: bytes) -> object:
        (saved / "row_numbers.npy").write_bytes(data)
        config["files"]["row_numbers.npy"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        (saved / "config.json").write_text(json.dumps(config))
        return adsh.load(saved).database_codes_

    return parse, [(saved / "row_numbers.npy").read_bytes()]


def _export(folder: Path) -> tuple[Parser, list[bytes]]:
    from adsh.encoders import onnx_package
    from adsh.errors import AdshError

    (folder / "model.onnx").write_bytes(b"graph")
    facts = {"bits": 8, "fingerprint": "f", "input": {"shape": ["n", 3]}, "pictures": None, "vector_size": 0,
             "classes": ["a"], "method": "adsh", "network": "mlp"}  # fmt: skip
    example = onnx_package.describe(folder / "model.onnx", facts).encode()

    def read(path: Path) -> None:
        for one in (onnx_package.read, onnx_package.facts_of):
            with suppress(AdshError):
                one(path.parent)

    return _of_file(folder / "export.json", read), [example]


def _snapshot(folder: Path) -> tuple[Parser, list[bytes]]:
    """A snapshot as it lies there, and one whose checksum of the header is right."""
    from adsh.errors import FolderError
    from adsh.index.embedded.snapshot import SnapshotDamaged, read_snapshot, write_snapshot

    path = folder / "s.bin"
    write_snapshot(path, {"words": np.zeros((2, 1), np.uint64), "places": np.arange(2, dtype=np.uint32)})
    whole = path.read_bytes()
    length = struct.unpack_from("<16sII", whole)[1]

    def parse(data: bytes) -> object:
        if data[:1] == b"h":  # a header of their own
            head = data[1:]
            data = struct.pack("<16sII", b"adsh snapshot 1\n", len(head), zlib.crc32(head)) + head + bytes(256)
        path.write_bytes(data)
        try:
            return read_snapshot(path)
        except SnapshotDamaged as problem:  # which the index answers by rebuilding it
            raise FolderError(str(problem)) from None

    return parse, [whole, b"h" + whole[24 : 24 + length]]


def _index_facts(folder: Path) -> tuple[Parser, list[bytes]]:
    """The header and the projection that an index stores, whose checksums are right."""
    from adsh.errors import AdshError
    from adsh.hamming.small_vectors import Projection
    from adsh.index.header import Header, load_projection, save_projection

    def parse(data: bytes) -> None:
        for one in (lambda: Header.from_json(data, "index"), lambda: load_projection(data)):
            with suppress(AdshError):
                one()

    projection = save_projection(Projection(np.zeros(3, np.float32), np.zeros((3, 2), np.float32), 1.0))
    return parse, [Header(48, "model").to_json(), projection]


def _index_file(folder: Path) -> tuple[Parser, list[bytes]]:
    """The whole database file of an index: an error, or the items as they were."""
    import adsh

    with adsh.open_index(folder / "i", bits=8) as index:
        index.add(["a", "b"], np.array([[1], [2]], np.uint8), [{"n": 1}, None])
    example = (folder / "i" / "index.db").read_bytes()

    def parse(data: bytes) -> object:
        shutil.rmtree(folder / "copy", ignore_errors=True)
        (folder / "copy").mkdir()
        (folder / "copy" / "index.db").write_bytes(data)
        with adsh.open_index(folder / "copy") as index:
            found = [(item.key, item.code, item.metadata) for item in index.items()]
        assert found == [("a", b"\x01", {"n": 1}), ("b", b"\x02", None)], found
        return found

    return parse, [example]


def _address(folder: Path) -> tuple[Parser, list[bytes]]:
    from adsh.utils.urls import check_address, options_of, shown

    def parse(data: bytes) -> object:
        text = data.decode(errors="surrogateescape")
        shown(text)
        return options_of(check_address(text), ("table",))

    return parse, [b"postgresql://user:pass%2Fword@host:5432/database?table=x", b"milvus+http://u:p@h:1?token=t"]


PARSERS: dict[str, Callable[[Path], tuple[Parser, list[bytes]]]] = {
    "image": _image,
    "search body": _search_body,
    "items body": _items_body,
    "filter": _filter,
    "csv": _manifest(".csv", [b'path,label,caption\na.png,dog|cat,"a ""b"", c"\nb.png,7,\n']),
    "tsv": _manifest(".tsv", [b"a.png\t1\nb.png\t10\n"]),
    "jsonl": _manifest(".jsonl", [b'{"path": "a.png", "labels": ["dog", 3], "n": {"x": [1]}}\n\n{"image": "b"}\n']),
    "list": _manifest(".txt", [b"a.png 0 1 0\nb c.png 1 0 0\n", b"a.png 3\nb.png 4\n"]),
    "coco": _coco,
    "npy": _npy_file,
    "npz": _npz_file,
    "npz member": _npz_member,
    "run.toml": _toml,
    "batch pickle": _batch_pickle,
    "config.json": _config,
    "row numbers": _row_numbers,
    "export.json": _export,
    "snapshot": _snapshot,
    "index facts": _index_facts,
    "index file": _index_file,
    "address": _address,
}
