"""Decode an image file, or its bytes, to uint8 pixels (H, W, 3).

Files that are not plain 8-bit RGB are converted:

    EXIF orientation      applied, so that the image is upright as in a viewer
    transparency          laid over white
    16 bits a channel     the high byte is kept
    CMYK, palette, grey   converted to RGB
    animation             the first frame

HEIC, the format of iPhones, is read with pillow-heif, the extra `heic`.

A file that cannot be decoded raises an error of one line that names it. Formats whose decoders run other programs
(EPS) are never tried, and an image of more pixels than `MOST_PIXELS` is refused from its header, before decoding.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from functools import cache
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from ...errors import InputError, first_line
from ...utils.reading import regular_file

Pixels = NDArray[np.uint8]

SUFFIXES = (  # of image files
    *(".avif", ".bmp", ".gif", ".heic", ".heif", ".hif", ".ico", ".jfif", ".jp2", ".jpe", ".jpeg", ".jpg"),
    *(".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tga", ".tif", ".tiff", ".webp"),
)
MOST_PIXELS = 178_956_970  # the limit of Pillow: half a gigabyte decoded
_FORMATS = ("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "DIB", "TIFF", "PPM", "JPEG2000", "ICO", "TGA", "AVIF")
_HEIC = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx")  # the brands of such files
_HEAD = 256  # bytes of a file that say its kind
_now = threading.local()  # `called`: what this thread is decoding
_ORIENTATION = 0x0112  # the EXIF tag
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def decode(
    source: bytes | str | PathLike[str],
    name: str | None = None,
    *,
    formats: tuple[str, ...] | None = None,
    most_pixels: int = MOST_PIXELS,
    check: Callable[[tuple[int, int]], None] | None = None,
) -> Pixels:
    """Return the pixels of an image file.

    Format and size are read from the header and checked before anything is decoded.

    Args:
        source: the path of the file, or its bytes.
        name: what errors call it.
        formats: those allowed, by Pillow's names; all known ones by default.
        most_pixels: the pixels that it may have.
        check: called with width and height; it raises to refuse the image.

    Returns:
        uint8 array (H, W, 3).

    Raises:
        InputError: the file cannot be read or decoded, or is refused.
    """
    return np.array(decode_rgb(source, name, formats=formats, most_pixels=most_pixels, check=check))


def decode_rgb(
    source: bytes | str | PathLike[str],
    name: str | None = None,
    *,
    formats: tuple[str, ...] | None = None,
    most_pixels: int = MOST_PIXELS,
    check: Callable[[tuple[int, int]], None] | None = None,
) -> Image.Image:
    """Return an image file as `decode` does, but as a Pillow image, which takes less memory to resize.

    Args:
        source, name, formats, most_pixels, check: as of `decode`.

    Returns:
        A loaded image of mode RGB.
    """
    if isinstance(source, bytes):
        called, file = name or "an image", io.BytesIO(source)
    else:
        called = name or str(source)
        try:
            with open(source, "rb", opener=regular_file) as stream:
                file = io.BytesIO(stream.read())
        except FileNotFoundError:
            raise InputError(f"{called} does not exist: put the image there, or take it off the list") from None
        except (OSError, ValueError) as problem:  # ValueError: a name that no file can have
            reason = getattr(problem, "strerror", None) or problem
            raise InputError(f"{called!r} cannot be read: {reason}") from None
    _now.called = called
    try:
        with Image.open(file, formats=_formats_for(file.getvalue()[:_HEAD], called, formats)) as image:
            check_size(image.size, called, most_pixels)
            if check is not None:
                check(image.size)
            rgb = to_rgb(image, called)
            rgb.load()
            return rgb
    except InputError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as problem:
        raise InputError(f"{called} is too large to decode safely ({first_line(problem)}): make it smaller") from None
    except UnidentifiedImageError:
        kind = "an empty file" if not file.getbuffer().nbytes else "no image of a known format"
        raise InputError(f"{called} is {kind}: replace it, or leave it out") from None
    except Exception as problem:  # decoders raise whatever the broken bytes lead them to
        raise InputError(f"{called} is a broken image ({first_line(problem)}): replace it, or leave it out") from None


def image_being_decoded() -> str | None:
    """Return what the image is called that this thread is decoding, or decoded last: for Pillow's warnings."""
    return getattr(_now, "called", None)


def check_size(size: tuple[int, int], called: str, most: int = MOST_PIXELS) -> None:
    """Raise if an image is too large to decode.

    Args:
        size: width and height.
        called: what the error calls the image.
        most: the pixels that it may have.
    """
    if size[0] * size[1] > most:
        raise InputError(
            f"{called} has {size[0]:,} x {size[1]:,} pixels, more than {most / 1e6:.4g} million: make it smaller"
        )


def to_pixels(image: Image.Image, called: str = "an image") -> Pixels:
    """Return a Pillow image as uint8 (H, W, 3): upright, over white, 8 bits."""
    return np.array(to_rgb(image, called))


def to_rgb(image: Image.Image, called: str = "an image") -> Image.Image:
    """Return a Pillow image in mode RGB: upright, over white, 8 bits."""
    upright = _UPRIGHT.get(_orientation(image))
    if image.mode == "F":
        raise InputError(f"{called} has floating-point pixels, whose range is unknown: save it with 8 bits a channel")
    if image.mode.startswith("I"):
        image = Image.fromarray(_high_bytes(np.asarray(image), called))
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA", "RGBa", "La"):
        transparent = image.convert("RGBA")
        image = Image.new("RGB", transparent.size, "white")
        image.paste(transparent, mask=transparent.getchannel("A"))
    elif image.mode != "RGB":
        image = image.convert("RGB")
    return image if upright is None else image.transpose(upright)


def as_pixels(value: Any, called: str = "an image") -> Pixels:
    """Return the pixels of a Pillow image, an array or tensor of bytes or of floats in 0 .. 1, a path or bytes."""
    if isinstance(value, dict) and ("bytes" in value or "path" in value):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes | str | PathLike):
        return decode(value, called if isinstance(value, bytes) else None)
    if isinstance(value, Image.Image):
        check_size(value.size, called)
        return to_pixels(value, called)
    array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    if hasattr(value, "detach") and array.ndim == 3 and array.shape[0] in (1, 3) and array.shape[2] not in (1, 3):
        array = array.transpose(1, 2, 0)
    if array.ndim == 2:
        array = array[..., None]
    if array.dtype.kind == "f" and array.ndim == 3:
        array = _bytes_of(array, called)
    if array.ndim != 3 or array.shape[2] not in (1, 3) or array.dtype != np.uint8:
        raise InputError(
            f"{called} has shape {array.shape} and type {array.dtype}: give uint8 (H, W, 3), an image or a path"
        )
    return np.repeat(array, 3, axis=2) if array.shape[2] == 1 else array


def _bytes_of(values: NDArray[Any], called: str) -> Pixels:
    """Return an image of floats in 0 .. 1, as torchvision's ToTensor gives it, as bytes."""
    if not (values.min() >= 0 and values.max() <= 1):
        raise InputError(
            f"{called} has floating-point pixels outside of 0 to 1: leave Normalize out, which the network does itself"
        )
    return (values * 255).round().astype(np.uint8)


def _orientation(image: Image.Image) -> int:
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # broken EXIF data: the pixels may still be fine, and are left as they are
        return 1


def _high_bytes(values: NDArray[Any], called: str) -> Pixels:
    if values.size and (values.min() < 0 or values.max() > 0xFFFF):
        raise InputError(f"{called} has pixels of 32 bits, whose range is unknown: save it with 8 bits a channel")
    return (values.astype(np.uint16) >> 8).astype(np.uint8)


def _is_heic(data: bytes) -> bool:
    """Return whether a file says that it is HEIC, by its first brand or, where that is of any such file, by another."""
    length = int.from_bytes(data[:4], "big")
    if data[4:8] != b"ftyp" or not 16 <= length <= len(data):
        return False
    brands = {data[at : at + 4] for at in range(16, length, 4)} if data[8:12] in (b"mif1", b"msf1") else {data[8:12]}
    return not brands.isdisjoint(_HEIC)


@cache
def _read_heic() -> bool:
    """Let Pillow read HEIC; return False where the extra is not installed."""
    try:
        from pillow_heif import register_heif_opener
    except ImportError:
        return False
    register_heif_opener()
    return True


def _formats_for(data: bytes, called: str, formats: tuple[str, ...] | None) -> list[str]:
    if formats is not None or not _is_heic(data):
        return known_formats(formats)
    if not _read_heic():
        raise InputError(f"{called} is HEIC: pip install 'adsh[heic]' to read such files, or save it as JPEG")
    return ["HEIF"]


@cache
def known_formats(only: tuple[str, ...] | None = None) -> list[str]:
    """Return the formats to try, by Pillow's names; only those in `only`, where given."""
    Image.init()
    return [name for name in _FORMATS if name in Image.OPEN and (only is None or name in only)]
