"""Which device to train on, and why."""

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
    """A device and the reason for it, in words a user can act on."""

    device: torch.device
    reason: str

    def __str__(self) -> str:
        return f"{self.device} ({self.reason})"


def choose_device(wanted: str | torch.device = "auto") -> DeviceChoice:
    """The device asked for, or with "auto" the GPU where torch finds one, else the CPU."""
    if wanted == "auto":
        if torch.cuda.is_available():
            return DeviceChoice(torch.device("cuda"), f"{torch.cuda.get_device_name()} found")
        if torch.version.cuda is None:
            return DeviceChoice(torch.device("cpu"), f"torch {torch.__version__} is built without CUDA")
        return DeviceChoice(torch.device("cpu"), "torch finds no CUDA device")
    try:
        device = torch.device(wanted)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(f'device={wanted!r} cannot be used here ({reason}): use "cpu" or "auto"') from None
    return DeviceChoice(device, "asked for")


@contextmanager
def threads_for(network: nn.Module, device: torch.device) -> Iterator[None]:
    """One CPU thread for a small network: waking others for such little work costs more than they give."""
    small = device.type == "cpu" and sum(p.numel() for p in network.parameters()) < SMALL_NETWORK
    with one_thread(small):
        yield


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """One CPU thread, where that is wanted: sums are then added up alike on any machine of a kind."""
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
