"""Files with more metadata than any real image are refused before Pillow opens them; real ones are not."""

from __future__ import annotations

import io
import random
import struct
import zlib

import pytest
from PIL import Image, features

from adsh.data.images.structure import check_structure
from adsh.errors import InputError

from ...serve.mutations import avif_items, avif_with, box, valid_images


def saved(kind: str, **options) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (32, 24), (200, 40, 40)).save(file, kind, **options)
    return file.getvalue()


def exif_bomb(segments: int, each: bytes = b"Exif\0\0") -> bytes:
    """A JPEG with so many segments of Exif, each of which Pillow adds to a copy of all before."""
    segment = b"\xff\xe1" + struct.pack(">H", 2 + len(each)) + each
    data = saved("JPEG")
    return data[:2] + segment * segments + data[2:]


def chunk(name: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_of_chunks(chunks: bytes) -> bytes:
    data = saved("PNG")
    at = data.index(b"IDAT") - 4
    return data[:at] + chunks + data[at:]


def gif_comment(blocks: int) -> bytes:
    data = saved("GIF")
    at = 13 + (3 << (data[10] & 7) + 1)
    return data[:at] + b"\x21\xfe" + (b"\x01a") * blocks + b"\0" + data[at:]


BOMBS = {
    "jpeg, Exif segments": exif_bomb(5000),
    "jpeg, comments": exif_bomb(5000).replace(b"\xff\xe1", b"\xff\xfe"),
    "jpeg, large Exif": exif_bomb(140, b"Exif\0\0" + b"x" * 65_000),
    "jpeg, padding": saved("JPEG")[:2] + b"\xff" * 9_000_000 + saved("JPEG")[2:],
    "jpeg, less padding": saved("JPEG")[:2] + b"\xff" * 8_000_000 + saved("JPEG")[2:],  # two seconds in Pillow
    "jpeg, junk": saved("JPEG")[:2] + b"\xff\0" * 2_000 + saved("JPEG")[2:],
    "jpeg, zeros": saved("JPEG")[:20] + b"\0" * 9_000_000 + saved("JPEG")[20:],
    "png, empty chunks": png_of_chunks(chunk(b"tEXt", b"a\0b") * 2000),
    "png, large text": png_of_chunks(chunk(b"tEXt", b"a\0" + b"b" * 9_000_000)),
    "png, pixels in pieces": png_of_chunks(chunk(b"IDAT") * 70_000),
    "gif, comment": gif_comment(20_000),
    **(
        {
            "avif, items": avif_items(60_000),
            "avif, properties": avif_with(b"ipco", box(b"free") * 2000),
            "avif, boxes": avif_with(b"meta", box(b"free") * 2000),
            "avif, brands": struct.pack(">I", 9_000_016) + b"ftypavif\0\0\0\0" + b"avif" * 2_250_000,
            "avif, long boxes": avif_with(b"meta", (struct.pack(">I4sQ", 1, b"free", 16)) * 2000),
            "avif, table of the rest": valid_images()["avif"] + struct.pack(">I4s", 0, b"iloc") + bytes(70_000),
        }
        if features.check("avif")
        else {}
    ),
    "webp, chunks": b"RIFF" + struct.pack("<I", 1 << 20) + b"WEBP" + b"none\0\0\0\0" * 2000 + saved("WEBP")[12:],
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_of_too_much_metadata_is_refused(name):
    with pytest.raises(InputError, match=r"the image has .*more than .*: save it again"):
        check_structure(BOMBS[name], "the image")


def test_real_files_are_not_refused():
    for data in valid_images().values():
        check_structure(data, "the image")
    profile = b"\xff\xe2" + struct.pack(">H", 60_002) + b"ICC_PROFILE\0\1\1" + b"p" * 59_986
    data = saved("JPEG")
    check_structure(data[:2] + profile * 40 + data[2:], "the image")  # a large colour profile
    check_structure(exif_bomb(3, b"Exif\0\0" + b"x" * 60_000), "the image")
    check_structure(data[:2] + b"\xff" * 60_000 + data[2:], "the image")  # padded to blocks of a disk
    check_structure(gif_comment(2_000), "the image")
    frames = [Image.new("RGB", (8, 8), (at % 256, at // 256, 0)) for at in range(1100)]
    check_structure(saved("GIF", save_all=True, append_images=frames), "the image")


@pytest.mark.skipif(not features.check("avif"), reason="this Pillow has no AVIF")
def test_real_files_of_many_boxes_are_not_refused():
    frames = [Image.new("RGB", (32, 24), (at, 0, 0)) for at in range(200)]
    check_structure(saved("AVIF", save_all=True, append_images=frames), "the image")
    exif = Image.Exif()
    exif[0x9286] = "x" * 60_000
    check_structure(saved("AVIF", exif=exif, icc_profile=b"p" * 500_000), "the image")
    check_structure(avif_items(1000), "the image")  # the tiles of a panorama
    film = random.Random(0).randbytes(9_000_000)
    check_structure(saved("AVIF") + box(b"mpvd", film), "the image")  # phones add one to a photograph


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
def test_what_follows_an_image_is_not_looked_at(kind):
    film = random.Random(0).randbytes(9_000_000)  # phones append one to a photograph; FF DA is in it 130 times
    for tail in (film, b"a text that somebody appended to the file"):
        check_structure(saved(kind) + tail, "the image")
    thumbnails = saved("JPEG", progressive=True) + saved("JPEG") * 60
    check_structure(thumbnails, "the image")


def test_scans_are_counted_up_to_the_end_of_the_image():
    data = saved("JPEG", progressive=True)
    scan = data[data.index(b"\xff\xda") : -2]
    check_structure(data[:-2] + scan * 3 + data[-2:], "the image")
    with pytest.raises(InputError, match="more than 100 scans"):
        check_structure(data[:-2] + scan * 101 + data[-2:], "the image")
    table = b"\xff\xc4\0\2"
    with pytest.raises(InputError, match="more than 2,000 scans and tables"):
        check_structure(data[:-2] + table * 3000 + data[-2:], "the image")


@pytest.mark.parametrize("cut", [0, 1, 3, 5, 11, 12, 13, 20, 40])
def test_what_ends_early_is_left_to_pillow(cut):
    for data in (*valid_images().values(), exif_bomb(3), b"RIFF", b"GIF89a"):
        check_structure(data[:cut], "the image")
