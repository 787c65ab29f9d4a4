"""Bound the structure of an image file before Pillow opens it.

A file may hold a million tiny segments of metadata, and Pillow looks at each in Python, at worst copying all earlier
ones for each. Real files have tens. The walk below follows a file as Pillow does, up to where its pixels start, and
stops at a limit; it reads lengths alone. Formats that Pillow leaves to a C library are bounded there, but for AVIF: its
library keeps every box, and compares each item with all others.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from ...errors import InputError

MOST_PIECES = 1024  # segments or chunks of metadata
MOST_METADATA = 8 << 20  # bytes in them: cameras that store depth or sound have several million
_MOST_BLOCKS = 1 << 14  # of a GIF, 255 bytes each at most
_MOST_PIXEL_PIECES = 1 << 16  # of a PNG, whose pixels lie in chunks too
_MOST_JUNK = 1 << 16  # bytes between the segments of a JPEG, which Pillow skips one by one
_MOST_SCANS = 100  # of a JPEG: each goes over all pixels, and a small file can have thousands
_MOST_LATER_PIECES = 2000  # of a JPEG from its first scan on: scans, and the tables between them
_MOST_TABLES = 1 << 16  # bytes of an AVIF's tables of items: libavif compares each item with all before it

_PNG, _GIF, _JPEG = b"\x89PNG\r\n\x1a\n", (b"GIF87a", b"GIF89a"), b"\xff\xd8\xff"
_BARE = {0x00, 0x01, *range(0xD0, 0xDA)}  # JPEG: the bytes after 0xFF that no length follows
_JUNK = re.compile(rb"[^\xff]+|\xff+(?=\xff)")  # JPEG: bytes between segments
_SCAN, _END, _MARKER = 0xDA, 0xD9, re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # JPEG: a marker among the pixels
_FRAME_CHUNKS = (b"IDAT", b"fdAT", b"fcTL")  # PNG
_TABLES = (b"iinf", b"iloc", b"ipma", b"iref", b"grpl")  # AVIF
_OUTER = {  # AVIF: the boxes that hold boxes, and the bytes between the head of each and the first of them
    **dict.fromkeys((b"iprp", b"ipco", b"moov", b"trak", b"mdia", b"minf", b"stbl"), 0),
    b"meta": 4,
    b"stsd": 8,
    b"av01": 78,
}


def check_structure(data: bytes, called: str) -> None:
    """Raise if a file has more metadata, or more pieces of it, than any real image.

    Args:
        data: the file.
        called: what the error calls it.

    Raises:
        InputError: it has; nothing of it was decoded.
    """
    if data.startswith(_JPEG):
        pieces, most = _jpeg_segments(data, called), MOST_PIECES
    elif data.startswith(_PNG):
        pieces, most = _png_chunks(data, called), MOST_PIECES
    elif data.startswith(_GIF):
        pieces, most = _gif_blocks(data), _MOST_BLOCKS
    elif data.startswith(b"RIFF"):
        pieces, most = _riff_chunks(data), MOST_PIECES
    elif data[4:8] == b"ftyp":
        pieces, most = _avif_boxes(data, called), MOST_PIECES
    else:
        return
    total = 0
    for count, size in enumerate(pieces, start=1):
        total += size
        if count > most or total > MOST_METADATA:
            limit = f"{most:,} pieces" if count > most else f"{MOST_METADATA:,} bytes"
            raise InputError(f"{called} has more than {limit} of metadata: save it again without")
    if data.startswith(_JPEG):
        _check_scans(data, 2 + total, called)


def _check_scans(data: bytes, at: int, called: str) -> None:
    """Raise if a JPEG has more scans than real ones do. What follows its end, such as a film, is not looked at.

    Args:
        data: the file.
        at: where its first scan starts.
        called: what the error calls it.
    """
    scans = 0
    for _ in range(_MOST_LATER_PIECES):
        marker = _MARKER.search(data, at)
        if marker is None or data[marker.start() + 1] == _END:
            return
        scans += data[marker.start() + 1] == _SCAN
        if scans > _MOST_SCANS:
            raise InputError(f"{called} is a JPEG of more than {_MOST_SCANS} scans: save it again")
        at = marker.end() + int.from_bytes(data[marker.end() : marker.end() + 2], "big")
    raise InputError(f"{called} is a JPEG of more than {_MOST_LATER_PIECES:,} scans and tables: save it again")


def _jpeg_segments(data: bytes, called: str) -> Iterator[int]:
    """Yield the length of each segment before the first scan, and of each run of bytes that belong to none."""
    at, skipped = 2, 0
    while at + 4 <= len(data) and data[at : at + 2] != b"\xff\xda":
        junk = _JUNK.match(data, at)
        if junk is not None:
            size = junk.end() - at
            skipped += size
            if skipped > _MOST_JUNK:
                raise InputError(f"{called} has more than {_MOST_JUNK:,} bytes between its segments: save it again")
        elif data[at + 1] in _BARE:
            size = 2
        else:
            size = 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        at += size
        yield size


def _png_chunks(data: bytes, called: str) -> Iterator[int]:
    """Yield the length of each chunk, those of frames left out."""
    at, pixels = len(_PNG), 0
    while at + 8 <= len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        if name == b"IEND":
            return  # whatever follows is no part of the image
        if name not in _FRAME_CHUNKS:
            yield min(size, len(data) - at)  # a file may be cut short
            at += 12 + size
            continue
        at += 12 + size
        pixels += 1
        if pixels > _MOST_PIXEL_PIECES:
            raise InputError(f"{called} has its pixels in more than {_MOST_PIXEL_PIECES:,} pieces: save it again")


def _gif_blocks(data: bytes) -> Iterator[int]:
    """Yield the length of each block before the first frame; 0 for a byte that Pillow skips."""
    at = 13 + (3 << (data[10] & 7) + 1 if len(data) > 10 and data[10] & 0x80 else 0)  # after the palette of all frames
    while at < len(data) and data[at] not in b",;":  # a frame, or the end
        if data[at] != 0x21:  # of an extension
            at += 1
            yield 0
            continue
        at += 2
        while at < len(data) and data[at]:
            size = data[at]
            at += 1 + size
            yield size
        at += 1
        yield 0


def _riff_chunks(data: bytes) -> Iterator[int]:
    """Yield the length of each chunk of a WebP file, those of frames left out."""
    at, end = 12, min(len(data), 8 + int.from_bytes(data[4:8], "little"))  # what follows is no part of the image
    while at + 8 <= end:
        name, size = struct.unpack_from("<4sI", data, at)
        if name not in (b"VP8 ", b"VP8L", b"ANMF", b"ALPH"):
            yield min(size, end - at)  # a file may be cut short
        at += 8 + size + size % 2


def _avif_boxes(data: bytes, called: str) -> Iterator[int]:
    """Yield the length of the list of brands, and 0 for each other box: pixels, a film, or boxes that follow."""
    at = tables = 0
    while at + 8 <= len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        head = 8
        if size == 1:
            head, size = 16, int.from_bytes(data[at + 8 : at + 16], "big")
        if name in _OUTER:
            at += head + _OUTER[name]
            yield 0
            continue
        size = min(size or len(data), len(data) - at)  # 0: to the end of the file, which may be cut short
        if size < head:
            return  # which no decoder accepts
        tables += size if name in _TABLES else 0
        if tables > _MOST_TABLES:
            raise InputError(f"{called} has more than {_MOST_TABLES:,} bytes of tables: save it again")
        at += size
        yield size if name == b"ftyp" else 0
