import contextlib
import io
import struct
import sys
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from adsh.data import check_readable, open_source
from adsh.data.images import decode as decode_module
from adsh.data.images.decode import as_pixels, decode
from adsh.errors import InputError

from ..image_cases import random_images, save


def encoded(image, kind="PNG", **options):
    held = io.BytesIO()
    image.save(held, kind, **options)
    return held.getvalue()


def png_header(width, height):
    """A PNG that says how large it is, and holds nothing."""

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def test_a_path_and_its_bytes_give_the_same_pixels(tmp_path):
    pixels = random_images(1, 5, 7)[0]
    path = save(tmp_path / "a.png", pixels)
    assert np.array_equal(decode(path), pixels)
    assert np.array_equal(decode(path.read_bytes()), pixels)
    assert np.array_equal(decode(str(path)), pixels)


@pytest.mark.parametrize(("orientation", "turns", "mirrored"), [(1, 0, 0), (3, 2, 0), (6, 3, 0), (8, 1, 0), (2, 0, 1)])
def test_exif_rotation_is_applied(orientation, turns, mirrored):
    pixels = random_images(1, 4, 6)[0]
    exif = Image.Exif()
    exif[0x0112] = orientation
    seen = decode(encoded(Image.fromarray(pixels), exif=exif))
    expected = np.rot90(pixels, turns)
    assert np.array_equal(seen, expected[:, ::-1] if mirrored else expected)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_every_exif_orientation_stands_as_pillow_shows_it(orientation):
    from PIL import ImageOps

    exif = Image.Exif()
    exif[0x0112] = orientation
    file = encoded(Image.fromarray(random_images(1, 4, 6)[0]), exif=exif)
    with Image.open(io.BytesIO(file)) as image:
        assert np.array_equal(decode(file), np.asarray(ImageOps.exif_transpose(image)))


def test_transparency_is_laid_over_white():
    pixels = np.zeros((1, 3, 4), dtype=np.uint8)
    pixels[0, :, 0], pixels[0, :, 3] = 200, (0, 255, 128)
    seen = decode(encoded(Image.fromarray(pixels)))
    assert seen[0, 0].tolist() == [255, 255, 255]
    assert seen[0, 1].tolist() == [200, 0, 0]
    assert seen[0, 2] == pytest.approx([227, 127, 127], abs=1)
    grey = np.zeros((1, 2, 2), dtype=np.uint8)
    grey[0, 1] = 40, 255
    assert decode(encoded(Image.fromarray(grey)))[0].tolist() == [[255] * 3, [40] * 3]


def test_a_palette_is_looked_up_with_and_without_a_transparent_colour():
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 40, 50, 60])
    image.putdata([0, 1])
    assert decode(encoded(image))[0].tolist() == [[10, 20, 30], [40, 50, 60]]
    assert decode(encoded(image, transparency=0))[0].tolist() == [[255] * 3, [40, 50, 60]]
    assert decode(encoded(image, transparency=bytes([255, 0])))[0].tolist() == [[10, 20, 30], [255] * 3]


def test_16_bit_pixels_keep_their_high_byte():
    values = np.array([[0, 255, 256, 0x7FFF, 0xFFFF]], dtype=np.uint16)
    for kind in ("PNG", "TIFF"):
        assert decode(encoded(Image.fromarray(values), kind))[0].tolist() == [[v >> 8] * 3 for v in values[0].tolist()]


def test_cmyk_grey_and_bilevel_images_become_rgb():
    cmyk = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    assert decode(encoded(cmyk, "TIFF"))[0, 0].tolist() == [255, 0, 0]
    assert decode(encoded(cmyk, "JPEG", quality=95)).shape == (8, 8, 3)
    assert decode(encoded(Image.new("L", (2, 2), 77)))[0, 0].tolist() == [77, 77, 77]
    assert decode(encoded(Image.new("1", (2, 2), 1)))[0, 0].tolist() == [255, 255, 255]


def test_an_animation_gives_its_first_frame():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "lime", "blue")]
    for kind in ("GIF", "WEBP"):
        file = encoded(frames[0], kind, save_all=True, append_images=frames[1:], duration=50, **lossless(kind))
        assert decode(file)[0, 0].tolist() == [255, 0, 0]


def lossless(kind):
    return {"lossless": True} if kind == "WEBP" else {}


def test_files_that_are_no_whole_image_are_refused_in_one_line_that_names_them(tmp_path):
    whole = encoded(Image.fromarray(random_images(1, 64, 64)[0]), "JPEG")
    bad = {
        "cut.jpg": (whole[: len(whole) // 2], "broken image"),
        "text.png": (b"this is not an image", "no image of a known format"),
        "empty.jpg": (b"", "an empty file"),
        "short.png": (encoded(Image.fromarray(random_images(1)[0]))[:200], "broken image"),
        "float.tiff": (encoded(Image.fromarray(np.ones((2, 2), np.float32)), "TIFF"), "floating-point"),
        "page.eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", "no image of a known format"),
    }
    for name, (held, said) in bad.items():
        (tmp_path / name).write_bytes(held)
        with pytest.raises(InputError, match=said) as caught:
            decode(tmp_path / name)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="missing.jpg does not exist"):
        decode(tmp_path / "missing.jpg")
    for odd in (tmp_path, "a\0b.png", "a\ud800.png"):
        with pytest.raises(InputError, match="cannot be read"):
            decode(odd)


@given(
    st.binary(max_size=300),
    st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"II*\0", b"BM"]),
)
def test_any_bytes_are_an_image_or_an_input_error(body, head):
    with contextlib.suppress(InputError):
        assert decode(head + body).shape[2] == 3


@given(st.data())
def test_a_spoilt_file_is_an_image_or_an_input_error(data):
    kind = data.draw(st.sampled_from(["PNG", "JPEG", "GIF", "TIFF", "BMP", "WEBP"]))
    file = bytearray(encoded(Image.fromarray(random_images(1, 9, 9)[0]), kind))
    for _ in range(data.draw(st.integers(1, 5))):
        file[data.draw(st.integers(0, len(file) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(InputError):
        assert decode(bytes(file)).ndim == 3


@pytest.mark.parametrize("size", [(50_000, 50_000), (12_000, 12_000), (14_000, 14_000)])
def test_a_image_too_large_is_refused_from_its_header(size):
    with pytest.raises(InputError, match="huge.png .*(too large|million)"):
        decode(png_header(*size), "huge.png")


def test_broken_exif_leaves_the_image_as_it_stands():
    file = encoded(Image.fromarray(random_images(1, 4, 6)[0]), exif=b"Exif\0\0MM\0*\0\0\0\xff")
    assert decode(file).shape == (4, 6, 3)


def test_whatever_holds_an_image_gives_its_pixels(tmp_path):
    import torch

    pixels = random_images(1, 5, 7)[0]
    path = save(tmp_path / "a.png", pixels)
    channels_first = torch.from_numpy(pixels).permute(2, 0, 1)
    held = [
        pixels,
        torch.from_numpy(pixels),
        channels_first,
        Image.fromarray(pixels),
        path,
        str(path),
        path.read_bytes(),
    ]
    for value in [*held, {"bytes": path.read_bytes(), "path": None}, {"bytes": None, "path": str(path)}]:
        assert np.array_equal(as_pixels(value), pixels)
    assert as_pixels(pixels[..., 0]).shape == (5, 7, 3)
    with pytest.raises(InputError, match=r"shape \(3, 5, 7\)"):
        as_pixels(pixels.transpose(2, 0, 1))


@pytest.fixture
def heic(tmp_path):
    pillow_heif = pytest.importorskip("pillow_heif")
    pixels = np.zeros((40, 60, 3), dtype=np.uint8)
    pixels[:, :30] = (200, 40, 40)
    path = tmp_path / "cat" / "IMG_1.HEIC"
    path.parent.mkdir()
    pillow_heif.from_pillow(Image.fromarray(pixels)).save(path, quality=95)
    return path


def test_heic_is_read_with_its_extra(heic):
    pixels = decode(heic)
    assert pixels.shape == (40, 60, 3)
    assert np.abs(pixels[20, 10].astype(int) - (200, 40, 40)).max() < 12
    assert pixels[20, 50].max() < 12
    assert np.array_equal(decode(heic.read_bytes()), pixels)
    assert open_source(heic.parent.parent).keys == ["cat/IMG_1.HEIC"]
    with pytest.raises(InputError, match="is a broken image|is no image"):
        decode(heic.read_bytes()[:300])
    with pytest.raises(InputError, match="no image of a known format"):  # a service takes no other formats than its own
        decode(heic.read_bytes(), formats=("JPEG",))


def test_without_the_extra_heic_files_are_listed_with_the_command(heic, monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    decode_module._read_heic.cache_clear()
    try:
        with pytest.raises(InputError, match=r"IMG_1.HEIC is HEIC: pip install 'adsh\[heic\]'"):
            decode(heic)
        save(heic.parent / "2.png", random_images(1)[0])
        read = check_readable(open_source(heic.parent.parent), skip_bad=True)
        assert [(key, "pip install 'adsh[heic]'" in reason) for key, reason in read.bad] == [("cat/IMG_1.HEIC", True)]
    finally:
        decode_module._read_heic.cache_clear()


def test_a_brand_of_any_such_file_is_not_taken_for_heic():
    avif = b"\x00\x00\x00\x20ftypmif1\x00\x00\x00\x00avifmif1miafMA1B"
    assert not decode_module._is_heic(avif)
    assert decode_module._is_heic(avif.replace(b"avif", b"heic"))
    assert not decode_module._is_heic(b"\x00\x00\x00\x20ftypheic")
