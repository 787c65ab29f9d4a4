"""Choose the device to train on, and say why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from ..errors import InputError

SMALL_NETWORK = 2_000_000  # parameters


@dataclass(frozen=True)
class DeviceChoice:
    """A device, and why it was chosen."""

    device: torch.device
    reason: str

    def __str__(self) -> str:
        return f"{self.device} ({self.reason})"


def choose_device(requested: str | torch.device = "auto") -> DeviceChoice:
    """Return the requested device; for "auto" the GPU where torch finds one, else the CPU."""
    if requested == "auto":
        if torch.cuda.is_available():
            return DeviceChoice(torch.device("cuda"), f"{torch.cuda.get_device_name()} found")
        if torch.version.cuda is None:
            return DeviceChoice(torch.device("cpu"), f"torch {torch.__version__} is built without CUDA")
        return DeviceChoice(torch.device("cpu"), "torch finds no CUDA device")
    try:
        device = torch.device(requested)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(f'device={requested!r} cannot be used here ({reason}): use "cpu" or "auto"') from None
    return DeviceChoice(device, "asked for")


@contextmanager
def threads_for(network: nn.Module, device: torch.device) -> Iterator[None]:
    """Use one CPU thread for a small network: starting others costs more than they save."""
    small = device.type == "cpu" and sum(p.numel() for p in network.parameters()) < SMALL_NETWORK
    with one_thread(small):
        yield


@contextmanager
def one_thread(enabled: bool = True) -> Iterator[None]:
    """Use one CPU thread: sums are then added in the same order on any machine of a kind."""
    before = torch.get_num_threads()
    if enabled:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
