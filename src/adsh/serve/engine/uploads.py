"""Decode an uploaded image file to the size that the network takes. Runs in a worker process."""

from __future__ import annotations

from typing import Any

from ...data.images.decode import decode_rgb
from ...data.images.resized import resize_rgb, too_long
from ...data.images.structure import check_structure
from ...errors import InputError

# What browsers show and cameras produce. Not ICO: a frame in it may be larger than its header says. Not TIFF: its
# decoder has had the most vulnerabilities, and writes to standard error by itself.
FORMATS = ("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "AVIF")
_ACCEPTED = "a JPEG, PNG, GIF, WebP, BMP or AVIF file"


class _IsLarge(InputError):
    """The image has more pixels than this process decodes."""


def decode_upload(options: dict[str, Any], data: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the shape and the RGB bytes of an image file.

    Args:
        options: `size`, the side that the network takes, 0 to leave it; `max_pixels`, the most pixels; `quick_pixels`,
            if given, those from which on an image is left to another process.
        data: The file.

    Returns:
        {"width", "height"}, and the pixels; {"large": True} for an image that is left to another process.

    Raises:
        InputError: The file is no image, or exceeds a limit.
    """
    size, max_pixels = options["size"], options["max_pixels"]

    def check_shape(shape: tuple[int, int]) -> None:
        """Refuse, by its header, an image so long that cutting it to a square would leave little of it."""
        if shape[0] * shape[1] > options.get("quick_pixels", max_pixels):
            raise _IsLarge
        if size and too_long(shape, size, max_pixels):
            raise InputError(
                f"the image has {shape[0]:,} x {shape[1]:,} pixels, too long to be cropped to a square: crop it "
                "yourself"
            )

    try:
        check_structure(data, "the image")
        image = decode_rgb(data, "the image", formats=FORMATS, most_pixels=max_pixels, check=check_shape)
    except _IsLarge:
        return {"large": True}, b""
    except InputError as problem:
        text = str(problem).replace(": replace it, or leave it out", f": send {_ACCEPTED}")
        raise InputError(text.replace(": save it again", f": save it again, and send {_ACCEPTED}")) from None
    if size:
        image = resize_rgb(image, size)
    return {"width": image.width, "height": image.height}, image.tobytes()
