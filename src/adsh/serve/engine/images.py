"""Encode uploaded images: decode them in processes that can be ended, and encode them in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ...encoders.base import Encoder
from .batcher import Batcher
from .limits import Limits
from .problems import too_busy
from .workers import WorkerPool

_DECODERS = 2  # processes for small images and as many for large ones, and so the most of these in memory
_QUICK_PIXELS = 1 << 21  # an image of more goes to the others: a small one never waits for it
_LARGE_NICE = 10
_BYTES_PER_PIXEL, _MEMORY = 16, 1 << 30  # that decoding may take: for each pixel, and besides
_WAIT = 0.004  # seconds that the first image of a batch waits for others


class EncodedImage(NamedTuple):
    """One image as the network encodes it."""

    code: bytes
    outputs: NDArray[np.float32]  # (bits,)
    vector: NDArray[np.float32] | None  # (d,)
    familiarity: float | None = None


class ImageEncoder:
    """Encode uploads; `await image_encoder(data)` returns the `EncodedImage` of an image file.

    Args:
        encoder: The model.
        limits: How many images may wait, and be encoded together.
        on_batch: Called with the size of each batch.
    """

    def __init__(self, encoder: Encoder, limits: Limits, on_batch: Callable[[int], None] | None = None) -> None:
        self._encoder, self._limits = encoder, limits
        memory = _MEMORY + _BYTES_PER_PIXEL * limits.max_pixels
        self._decoders = WorkerPool(_DECODERS, memory, limits.max_decode_seconds, "decode")
        self._large = WorkerPool(_DECODERS, memory, limits.max_decode_seconds, "decode-large", _LARGE_NICE)
        self._options = {"size": encoder.size, "max_pixels": limits.max_pixels}  # the same for every encoder
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
            shape, pixels = await self._decoders("image", {**self._options, "quick_pixels": _QUICK_PIXELS}, data)
            if "large" in shape:
                shape, pixels = await self._large("image", self._options, data)
            image = Image.frombytes("RGB", (shape["width"], shape["height"]), pixels)
            return await self._network(image)
        finally:
            self.in_progress -= 1

    def _encode(self, images: list[Image.Image]) -> Sequence[EncodedImage | Exception]:
        if len({image.size for image in images}) > 1:
            return [encoded for image in images for encoded in self._encode([image])]
        encoding = self._encoder.encode(images)
        codes, outputs, vectors, familiar = encoding.codes, encoding.outputs, encoding.vectors, encoding.familiarity
        return [
            EncodedImage(
                codes[row].tobytes(),
                outputs[row],
                None if vectors is None else vectors[row],
                None if familiar is None else float(familiar[row]),
            )
            for row in range(len(images))
        ]

    def replace(self, encoder: Encoder) -> None:
        """Encode the next batch with another encoder, which takes images of the same size."""
        self._encoder = encoder

    def start(self) -> None:
        """Start a decoder, so that the first image need not wait for it."""
        self._decoders.start()

    async def close(self) -> None:
        """Return when everything accepted is answered."""
        await self._network.close()
        for pool in (self._decoders, self._large):
            await asyncio.get_running_loop().run_in_executor(None, pool.close)
