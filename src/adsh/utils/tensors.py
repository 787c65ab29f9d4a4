"""Tensors from any device as the bytes of a safetensors file."""

from __future__ import annotations

from collections.abc import Mapping

from safetensors.torch import save
from torch import Tensor


def on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return contiguous tensors on the CPU; those that share memory are copied, as safetensors requires."""
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    seen: set[int] = set()
    for name, tensor in plain.items():
        memory = tensor.untyped_storage().data_ptr()
        if memory in seen:
            plain[name] = tensor.clone()
        seen.add(memory)
    return plain


def as_bytes(tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """Return the bytes of a .safetensors file."""
    return bytes(save(on_cpu(tensors), metadata=metadata))
