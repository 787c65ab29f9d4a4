"""Every parser of what strangers send: examples are taken, and broken ones refused in one line.

`make attack` does the same a million times, guided by coverage; what it found is tested by name here and in the folders
of the parsers.
"""

import json
import struct
import warnings
import zlib

import numpy as np
import pytest
from tools.attack._parsers import PARSERS, parser

from adsh.errors import AdshError, FolderError, InputError
from adsh.hamming.small_vectors import Projection
from adsh.index.embedded.snapshot import SnapshotDamaged, read_snapshot
from adsh.index.header import Header, load_projection, save_projection
from adsh.serve.engine.problems import Problem
from adsh.utils.urls import secrets_of, shown
from tests.serve.mutations import mutated

BROKEN = 25  # of each parser


@pytest.mark.parametrize("name", PARSERS)
def test_broken_input_is_refused_in_one_line(name):
    rng = np.random.default_rng(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with parser(name) as (parse, examples):
            for example in examples:
                for data in (example, b"", *(mutated(example, rng) for _ in range(BROKEN // len(examples)))):
                    try:
                        parse(data)
                    except (AdshError, Problem) as problem:
                        said = str(problem)
                        assert len(said.splitlines()) == 1, said  # many may be taken


def test_a_message_is_one_line_whatever_it_quotes():
    for kind in (InputError, FolderError):
        assert str(kind("no field 'a\nb\u2028c': leave it out")) == "no field 'a b c': leave it out"
    assert Problem(422, "a\nb is not known here").detail == "a b is not known here"


@pytest.mark.parametrize(
    "header", [b"{}", b"[]", b'{"bytes": 1}', b'{"bytes": "x", "arrays": {}}', b'{"bytes": 232, "arrays": {"a": 1}}']
)
def test_a_snapshot_with_another_header_is_damaged(tmp_path, header):
    start = struct.pack("<16sII", b"adsh snapshot 1\n", len(header), zlib.crc32(header))
    (tmp_path / "s.bin").write_bytes(start + header + bytes(256))
    with pytest.raises(SnapshotDamaged):
        read_snapshot(tmp_path / "s.bin")
    (tmp_path / "s.bin").write_bytes(b"adsh")
    with pytest.raises(SnapshotDamaged, match="too short"):
        read_snapshot(tmp_path / "s.bin")


@pytest.mark.parametrize("change", [{"bits": "48"}, {"format_version": None}, {"model": 3}, {"bits": 10**9}])
def test_a_header_with_other_values_is_refused(change):
    fields = json.loads(Header(48, "m").to_json()) | change
    with pytest.raises(AdshError):
        Header.from_json(json.dumps(fields).encode(), "index")
    for other in (b"[]", b"{", b"[" * 100_000, b"\xff"):
        with pytest.raises(FolderError, match="is not an adsh index"):
            Header.from_json(other, "index")


def test_a_projection_of_another_length_is_refused():
    stored = save_projection(Projection(np.zeros(3, np.float32), np.zeros((3, 2), np.float32), 1.0))
    assert load_projection(stored) is not None
    for damaged in (b"", stored[:-1], stored + b"\0", struct.pack("<qq", -1, 2), struct.pack("<qq", 1 << 60, 1 << 60),
                    struct.pack("<qqd", 0, 1 << 62, 1.0)):  # fmt: skip
        with pytest.raises(FolderError, match="projection of the vectors is damaged"):
            load_projection(damaged)


def test_an_address_that_is_no_unicode_is_shown_without_its_password():
    address = "postgresql://u:p@h/d?\udce1=1&password=\udce1"
    assert shown(address) == "postgresql://u@h/d?%3F=1"
    assert secrets_of(address)
