"""Encode uploaded images: check their headers first, decode them next to the event loop, encode them in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...data.images.decode import Pixels, decode
from ...data.images.resized import resize_image, too_long
from ...encoders.base import Encoder
from ...errors import InputError
from .batcher import Batcher
from .limits import Limits
from .problems import too_busy

# What browsers show and cameras produce. Not ICO: a frame in it may be larger than its header says. Not TIFF: its
# decoder has had the most vulnerabilities, and writes to standard error by itself.
FORMATS = ("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "AVIF")
_ACCEPTED = "a JPEG, PNG, GIF, WebP, BMP or AVIF file"
_JPEG, _SCAN, _SCANS = b"\xff\xd8", b"\xff\xda", 100  # each scan goes over all pixels: a small file can have thousands
_DECODERS = 2  # threads, and so the most images in memory at their full size
_WAIT = 0.004  # seconds that the first image of a batch waits for others


class EncodedImage(NamedTuple):
    """One image as the network encodes it."""

    code: bytes
    outputs: NDArray[np.float32]  # (bits,)
    vector: NDArray[np.float32] | None  # (d,)


class ImageEncoder:
    """Encode uploads; `await image_encoder(data)` returns the `EncodedImage` of an image file.

    Args:
        encoder: The model.
        limits: How many images may wait, and be encoded together.
        on_batch: Called with the size of each batch.
    """

    def __init__(self, encoder: Encoder, limits: Limits, on_batch: Callable[[int], None] | None = None) -> None:
        self._encoder, self._limits = encoder, limits
        self._decoders = ThreadPoolExecutor(_DECODERS, thread_name_prefix="adsh-decode")
        self._network: Batcher[Image.Image, EncodedImage] = Batcher(
            self._encode,
            what="images",
            max_batch=limits.max_batch,
            capacity=limits.max_queue,
            wait=_WAIT,
            on_batch=on_batch,
        )
        self.in_progress = 0

    async def __call__(self, data: bytes) -> EncodedImage:
        """Decode, resize and encode an image, together with others that came at the same time."""
        if self.in_progress >= self._limits.max_queue:
            raise too_busy("images", self._limits.max_queue)
        self.in_progress += 1
        try:
            image = await asyncio.get_running_loop().run_in_executor(self._decoders, self._decode, data)
            return await self._network(image)
        finally:
            self.in_progress -= 1

    def _decode(self, data: bytes) -> Image.Image:
        if data.startswith(_JPEG) and data.count(_SCAN) > _SCANS:
            raise InputError(f"the image is a JPEG of more than {_SCANS} scans: save it again, and send {_ACCEPTED}")
        try:
            pixels: Pixels = decode(
                data, "the image", formats=FORMATS, most_pixels=self._limits.max_pixels, check=self._check_shape
            )
        except InputError as problem:
            raise InputError(str(problem).replace(": replace it, or leave it out", f": send {_ACCEPTED}")) from None
        if self._encoder.size:  # resized before it waits, so that what waits is small
            pixels = resize_image(pixels, self._encoder.size, name="the request", most=self._limits.max_pixels)
        return Image.fromarray(pixels)

    def _check_shape(self, size: tuple[int, int]) -> None:
        """Refuse, by its header, an image so long that cutting it to a square would leave little of it."""
        if self._encoder.size and too_long(size, self._encoder.size, self._limits.max_pixels):
            raise InputError(
                f"the image has {size[0]:,} x {size[1]:,} pixels, too long to be cropped to a square: crop it yourself"
            )

    def _encode(self, images: list[Image.Image]) -> Sequence[EncodedImage | Exception]:
        if len({image.size for image in images}) > 1:
            return [encoded for image in images for encoded in self._encode([image])]
        encoding = self._encoder.encode(images)
        codes, outputs, vectors = encoding.codes, encoding.outputs, encoding.vectors
        return [
            EncodedImage(codes[row].tobytes(), outputs[row], None if vectors is None else vectors[row])
            for row in range(len(images))
        ]

    async def close(self) -> None:
        """Return when everything accepted is answered."""
        await self._network.close()
        await asyncio.get_running_loop().run_in_executor(None, self._decoders.shutdown)
