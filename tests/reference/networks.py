"""Small networks written out in NumPy, for one image: convolution, pooling and normalisation from their definitions."""

from __future__ import annotations

import numpy as np


def convolution(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, stride: int = 1, pad: int = 0) -> np.ndarray:
    """(in, H, W) with (out, in, k, k)."""
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad)))
    k = weight.shape[2]
    windows = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(1, 2))[:, ::stride, ::stride]
    return np.tensordot(weight, windows, axes=([1, 2, 3], [0, 3, 4])) + bias[:, None, None]


def pool(x: np.ndarray, kind: str, size: int = 3, stride: int = 2) -> np.ndarray:
    """Windows of size x size; one that reaches over the end counts what is inside."""
    sides = [-(-(side - size) // stride) + 1 for side in x.shape[1:]]
    out = np.empty((len(x), *sides), dtype=x.dtype)
    for i in range(sides[0]):
        for j in range(sides[1]):
            window = x[:, i * stride : i * stride + size, j * stride : j * stride + size]
            out[:, i, j] = window.max(axis=(1, 2)) if kind == "max" else window.mean(axis=(1, 2))
    return out


def matconvnet_lrn(x: np.ndarray, n: int, kappa: float, alpha: float, beta: float) -> np.ndarray:
    """x_c / (kappa + alpha * sum over the n channels about c of x^2) ** beta, as vl_nnnormalize is documented."""
    out = np.empty_like(x)
    for c in range(len(x)):
        near = x[max(c - n // 2, 0) : c + n // 2 + 1]
        out[c] = x[c] / (kappa + alpha * (near**2).sum(axis=0)) ** beta
    return out


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def cnn_f(pixels: np.ndarray, layers: dict[str, tuple[np.ndarray, np.ndarray]], mean: np.ndarray) -> np.ndarray:
    """fc7 of a (224, 224, 3) image of 0 .. 255, from MatConvNet's H x W x in x out filters."""

    def conv(name: str, x: np.ndarray, stride: int = 1, pad: int = 0) -> np.ndarray:
        filters, biases = layers[name]
        return relu(convolution(x, filters.transpose(3, 2, 0, 1).astype(np.float64), biases, stride, pad))

    x = (pixels - mean).transpose(2, 0, 1).astype(np.float64)
    for name, stride, pad in (("conv1", 4, 0), ("conv2", 1, 2)):
        x = pool(matconvnet_lrn(conv(name, x, stride, pad), 5, 2, 1e-4, 0.75), "max")
    for name in ("conv3", "conv4", "conv5"):
        x = conv(name, x, pad=1)
    x = pool(x, "max")
    for name in ("fc6", "fc7"):
        x = conv(name, x)
    return x[:, 0, 0]


def dsh_net(x: np.ndarray, weights: dict[str, np.ndarray]) -> np.ndarray:
    """The outputs for one prepared (3, 32, 32) image."""
    for i, kind in ((0, "max"), (3, "mean"), (6, "mean")):
        x = convolution(x, weights[f"convolutions.{i}.weight"], weights[f"convolutions.{i}.bias"], pad=2)
        x = pool(relu(x), kind)
    x = relu(weights["linear.weight"] @ x.ravel() + weights["linear.bias"])
    return weights["head.weight"] @ x + weights["head.bias"]
