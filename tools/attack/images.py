"""Hostile images: metadata and decompression bombs, truncated, mutated, polyglots, every accepted format."""

from __future__ import annotations

import io
import random
import struct
import zlib
from functools import cache
from typing import Any

import numpy as np
from PIL import Image
from tests.serve.mutations import avif_items, avif_with, box

from ._settings import Settings
from ._under_load import attack

_PATHS = ("/v1/encode", "/v1/search")


def run(settings: Settings) -> dict[str, Any]:
    """Send them while 32 clients search."""
    return attack(settings, draw)


def draw(rng: random.Random) -> bytes:
    """Return the next request."""
    small, large = _originals(), _bombs()
    choice = rng.random()
    if choice < 0.02:
        data = rng.choice(large)
    elif choice < 0.2:
        data = _polyglot(rng, rng.choice(small))
    else:
        data = _mutated(rng, rng.choice(small))
    return request(rng.choice(_PATHS), data)


def request(path: str, data: bytes) -> bytes:
    """Return the request that uploads an image."""
    body = b'--x\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n' + data + b"\r\n--x--\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Content-Type: multipart/form-data; boundary=x\r\n\r\n".encode() + body


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    """Return an image as a file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@cache
def _originals() -> list[bytes]:
    rng = np.random.default_rng(0)
    image = Image.fromarray(rng.integers(0, 256, size=(9, 12, 3), dtype=np.uint8)).resize((120, 90))
    files = [saved(image, kind) for kind in ("JPEG", "PNG", "GIF", "BMP", "WEBP", "AVIF") if kind in Image.SAVE]
    files.append(saved(image, "JPEG", progressive=True))
    files.append(saved(image.convert("CMYK"), "JPEG"))
    files.append(saved(image.convert("P"), "PNG"))
    files.append(saved(image, "GIF", save_all=True, append_images=[image.rotate(90)]))
    exif = Image.Exif()
    exif[0x0112] = 6
    files.append(saved(image, "JPEG", exif=exif))
    return files


@cache
def _bombs() -> list[bytes]:
    jpeg = saved(Image.new("RGB", (32, 32)), "JPEG")
    png = saved(Image.new("RGB", (32, 32)), "PNG")
    gif = saved(Image.new("RGB", (32, 32)), "GIF")
    at = png.index(b"IDAT") - 4
    gif_at = 13 + (3 << (gif[10] & 7) + 1)
    text = _chunk(b"zTXt", b"a\0\0" + zlib.compress(b"\0" * 5_000_000))
    return [
        *(jpeg[:2] + b"\xff\xe1\0\x08Exif\0\0" * count + jpeg[2:] for count in (1000, 100_000, 800_000)),
        jpeg[:2] + b"\xff\xe1\xff\xff" * 200 + jpeg[2:],
        jpeg[:2] + b"\xff" * 8_000_000 + jpeg[2:],
        saved(Image.new("1", (7000, 7000)), "PNG"),  # just under the limit of pixels
        saved(Image.new("1", (40_000, 40_000)), "PNG"),
        saved(Image.new("RGB", (7000, 7000)), "JPEG", quality=10),
        saved(Image.new("L", (1, 60_000)), "PNG"),
        png[:at] + text * 200 + png[at:],
        png[:at] + _chunk(b"tEXt", b"a\0b") * 100_000 + png[at:],
        png[:at] + _chunk(b"IDAT", b"") * 200_000 + png[at:],
        gif[:gif_at] + b"\x21\xfe" + b"\x01a" * 2_000_000 + b"\0" + gif[gif_at:],
        _bmp_runs(5000, 2_000_000),
        saved(Image.new("RGB", (4000, 4000)), "WEBP", quality=1),
        *(_avif_bombs() if "AVIF" in Image.SAVE else []),
    ]


def _avif_bombs() -> list[bytes]:
    return [
        saved(Image.new("RGB", (7000, 7000)), "AVIF", quality=1, speed=10),
        avif_items(60_000),
        avif_with(b"ipco", box(b"free") * 1_900_000),
    ]


def _bmp_runs(side: int, runs: int) -> bytes:
    """Return a BMP of runs of one pixel, which Pillow decodes in Python."""
    head = struct.pack("<IiiHHIIiiII", 40, side, side, 1, 8, 1, 2 * runs, 0, 0, 256, 0)
    palette, pixels = bytes(1024), b"\x01\x07" * runs
    return b"BM" + struct.pack("<IHHI", 1078 + len(pixels), 0, 0, 1078) + head + palette + pixels


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _polyglot(rng: random.Random, data: bytes) -> bytes:
    """Return a file that is an image and something else."""
    other = rng.choice(
        [b"<script>alert(1)</script>", b"PK\x03\x04" + bytes(40), b"%PDF-1.4\n", b"#!/bin/sh\n", b"%!PS-Adobe\n", data]
    )
    return other + data if rng.random() < 0.3 else data + other * rng.randrange(1, 50)


def _mutated(rng: random.Random, data: bytes) -> bytes:
    """Return a file with a few things wrong."""
    broken = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(broken) if rng.random() < 0.5 else min(len(broken), 200))
        match rng.randrange(6):
            case 0:
                broken[at] ^= 1 << rng.randrange(8)
            case 1:
                del broken[max(at, 1) :]
            case 2:
                broken[at:at] = broken[at : at + rng.randrange(1, 64)]
            case 3:
                number = rng.choice([0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 65535, 40_000])
                broken[at : at + 4] = struct.pack(rng.choice(["<I", ">I"]), number)
            case 4:
                broken[at : at + 8] = rng.randbytes(8)
            case _:
                broken[at : at + 2] = rng.choice([b"\xff\xd8", b"\xff\xda", b"\xff\xe1", b"\0\0", b"\xff\xff"])
    return bytes(broken)
