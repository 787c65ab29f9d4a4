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
