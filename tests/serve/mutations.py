"""Images of every format that is taken, and ways to break them."""

from __future__ import annotations

import io
import struct

import numpy as np
from PIL import Image, features


def valid_images() -> dict[str, bytes]:
    """One image a format and mode."""
    rng = np.random.default_rng(0)
    smooth = Image.fromarray(rng.integers(0, 256, size=(9, 12, 3), dtype=np.uint8)).resize((120, 90))
    variants = {
        "jpeg": (smooth, "JPEG", {"quality": 80}),
        "jpeg progressive": (smooth, "JPEG", {"progressive": True}),
        "jpeg cmyk": (smooth.convert("CMYK"), "JPEG", {}),
        "png": (smooth, "PNG", {}),
        "png palette": (smooth.convert("P"), "PNG", {}),
        "png 16 bit": (Image.fromarray(rng.integers(0, 1 << 16, size=(40, 50)).astype(np.uint16)), "PNG", {}),
        "png alpha": (smooth.convert("RGBA"), "PNG", {}),
        "gif": (smooth, "GIF", {"save_all": True, "append_images": [smooth.rotate(90)]}),
        "bmp": (smooth, "BMP", {}),
        "webp": (smooth, "WEBP", {}),
        "webp lossless": (smooth, "WEBP", {"lossless": True}),
        **({"avif": (smooth, "AVIF", {})} if features.check("avif") else {}),
    }
    files = {}
    for name, (image, kind, options) in variants.items():
        file = io.BytesIO()
        image.save(file, kind, **options)
        files[name] = file.getvalue()
    return files


def mutated(data: bytes, rng: np.random.Generator) -> bytes:
    """The file with a few things wrong."""
    broken = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        at = int(rng.integers(len(broken))) if rng.random() < 0.5 else int(rng.integers(min(len(broken), 200)))
        match int(rng.integers(7)):
            case 0:
                broken[at] ^= 1 << int(rng.integers(8))
            case 1:
                broken[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF]))
            case 2:
                del broken[max(at, 1) :]
            case 3:
                length = int(rng.integers(1, 64))
                broken[at:at] = broken[at : at + length]
            case 4:
                number = int(rng.choice([0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 65535, 40_000]))
                order = str(rng.choice(["<I", ">I"]))
                broken[at : at + 4] = struct.pack(order, number)
            case 5:
                broken[at : at + 8] = rng.bytes(8)
            case 6:
                del broken[at : at + int(rng.integers(1, 32))]
        if not broken:
            broken = bytearray(b"\0")
    return bytes(broken)


def avif_with(parent: bytes, extra: bytes, after: int = 0) -> bytes:
    """Return an AVIF with more bytes in one of its boxes.

    Args:
        parent: The name of the box.
        extra: What is added at its end.
        after: How much is added to the count of entries that the box starts with.
    """
    data = bytearray(valid_images()["avif"])
    around = {b"meta": (b"meta",), b"ipco": (b"ipco", b"iprp", b"meta"), b"iinf": (b"iinf", b"meta")}[parent]
    start = data.index(parent) - 4
    end = start + int.from_bytes(data[start : start + 4], "big")
    data[end:end] = extra
    for name in around:
        at = data.index(name) - 4
        size = int.from_bytes(data[at : at + 4], "big") + len(extra)
        data[at : at + 4] = size.to_bytes(4, "big")
    if after:
        data[start + 12 : start + 14] = (1 + after).to_bytes(2, "big")
    return bytes(data)


def box(name: bytes, body: bytes = b"") -> bytes:
    """Return a box of an AVIF."""
    return struct.pack(">I4s", 8 + len(body), name) + body


def avif_items(count: int) -> bytes:
    """Return an AVIF with so many items more, each of which libavif compares with all before: 60,000 take 3 s."""
    entry = b"\2\0\0\0%s\0\0av01\0"
    return avif_with(b"iinf", b"".join(box(b"infe", entry % struct.pack(">H", 5 + at)) for at in range(count)), count)
