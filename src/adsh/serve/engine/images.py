"""From uploaded bytes to a picture that a network takes: checked by its header first, decoded beside the event loop."""

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
from ...encoders.base import Coder
from ...errors import InputError
from ..limits import Limits
from ..problems import too_busy
from .batcher import Batcher

# What browsers show and cameras make. Not ICO: a frame in it may be larger than its header tells. Not TIFF: its decoder
# is the one with the most to go wrong, and writes to standard error by itself.
FORMATS = ("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "AVIF")
_SENT = "a JPEG, PNG, GIF, WebP, BMP or AVIF file"
_JPEG, _SCAN, _SCANS = b"\xff\xd8", b"\xff\xda", 100  # each scan goes over all pixels: a small file can have thousands
_DECODERS = 2  # threads; so many pictures at most are in memory at their full size
_WAIT = 0.004  # seconds that the first picture of a batch waits for others


class Seen(NamedTuple):
    """One picture through the network."""

    code: bytes
    outputs: NDArray[np.float32]  # (bits,)
    vector: NDArray[np.float32] | None  # (d,)


class Pictures:
    """`await pictures(data)` gives what the network makes of an uploaded picture."""

    def __init__(self, coder: Coder, limits: Limits, on_batch: Callable[[int], None] | None = None) -> None:
        self._coder, self._limits = coder, limits
        self._decoders = ThreadPoolExecutor(_DECODERS, thread_name_prefix="adsh-decode")
        self._network: Batcher[Image.Image, Seen] = Batcher(
            self._code,
            what="pictures",
            most=limits.max_batch,
            room=limits.max_queue,
            wait=_WAIT,
            on_batch=on_batch,
        )
        self.under_way = 0

    async def __call__(self, data: bytes) -> Seen:
        """Decoded, fitted to the network's size and coded, with others that came at the same time."""
        if self.under_way >= self._limits.max_queue:
            raise too_busy("pictures", self._limits.max_queue)
        self.under_way += 1
        try:
            image = await asyncio.get_running_loop().run_in_executor(self._decoders, self._read, data)
            return await self._network(image)
        finally:
            self.under_way -= 1

    def _read(self, data: bytes) -> Image.Image:
        if data.startswith(_JPEG) and data.count(_SCAN) > _SCANS:
            raise InputError(f"the image is a JPEG of more than {_SCANS} scans: save it anew, and send {_SENT}")
        try:
            pixels: Pixels = decode(
                data, "the image", formats=FORMATS, most_pixels=self._limits.max_pixels, check=self._check_shape
            )
        except InputError as problem:
            raise InputError(str(problem).replace(": replace it, or leave it out", f": send {_SENT}")) from None
        if self._coder.size:  # what waits is small, whatever was sent
            pixels = resize_image(pixels, self._coder.size, name="the request", most=self._limits.max_pixels)
        return Image.fromarray(pixels)

    def _check_shape(self, size: tuple[int, int]) -> None:
        """Refuses by its header a picture so long that little of it would be left."""
        if self._coder.size and too_long(size, self._coder.size, self._limits.max_pixels):
            raise InputError(
                f"the image has {size[0]:,} x {size[1]:,} pixels, too long to be cut to a square: crop it before"
            )

    def _code(self, images: list[Image.Image]) -> Sequence[Seen | Exception]:
        if len({image.size for image in images}) > 1:
            return [seen for image in images for seen in self._code([image])]
        coded = self._coder.code(images)
        codes, outputs, vectors = coded.codes, coded.outputs, coded.vectors
        return [
            Seen(codes[at].tobytes(), outputs[at], None if vectors is None else vectors[at])
            for at in range(len(images))
        ]

    async def close(self) -> None:
        """Ends when everything taken is answered."""
        await self._network.close()
        await asyncio.get_running_loop().run_in_executor(None, self._decoders.shutdown)
