"""A mini-batch computed in parts by one process: what it learns is what it learns at once, up to rounding."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from torch import nn

import adsh
from adsh.errors import InputError

from .distributed_cases import OPTIONS, images, points


def network(*more: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    convolution = nn.Conv2d(3, 6, 3, bias=False)  # batch norm takes a bias away: its gradient would be rounding alone
    layers = (convolution, nn.BatchNorm2d(6, momentum=None), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2))
    return nn.Sequential(*more, *layers, nn.Linear(216, 12))


def fitted(parts: int, *more: nn.Module, **options: object) -> adsh.ADSH:
    recipe = {"parts": parts, "flip": True, "shift": 0.2, "ema": 0.9}
    return adsh.ADSH(12, network=network(*more), **{**OPTIONS, "outer": 1, **options}, recipe=recipe).fit(
        images(), points()[1]
    )


def test_the_first_steps_are_those_of_the_whole_mini_batch():
    at_once, in_parts = fitted(1), fitted(4)
    np.testing.assert_array_equal(in_parts.database_codes_, at_once.database_codes_)
    whole = at_once.network_.state_dict()
    for name, weight in in_parts.network_.state_dict().items():
        torch.testing.assert_close(weight, whole[name], atol=1e-5, rtol=1e-5, msg=name)


def test_the_outcome_does_not_depend_on_the_threads_of_a_kernel_and_their_number_stays():
    before = torch.get_num_threads()
    ended = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            ended.append(fitted(2))
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    for one, other in zip(*(model.network_.state_dict().values() for model in ended), strict=True):
        assert torch.equal(one, other)


class RefusesRow(nn.Module):
    """Goes wrong in one of the parts, while the others are on their way to batch norm."""

    def forward(self, x):
        if self.training and torch.is_grad_enabled() and (x.mean(dim=(1, 2, 3)) > self.most).any():
            raise ValueError("that row again")
        return x


def test_what_goes_wrong_in_one_part_ends_all_with_its_own_error():
    refuses = RefusesRow()
    refuses.most = float(np.sort(images().mean(axis=(1, 2, 3)))[-8]) / 255  # some rows, not all parts of a batch
    with pytest.raises(ValueError, match="that row again"):
        fitted(4, refuses)


class OwnNoise(nn.Module):
    def forward(self, x):
        return x + torch.randn(x.shape) if self.training else x


def test_random_numbers_that_parts_cannot_share_are_refused():
    with pytest.raises(InputError, match="draws random numbers that shards cannot share: use torch's dropout"):
        fitted(4, OwnNoise())


def test_parts_are_for_a_cpu():
    with pytest.raises(InputError, match="deterministic_shards=4 on meta: give device cpu, or leave it out"):
        fitted(4, device="meta")


def test_no_thread_of_a_part_stays():
    rng = np.random.default_rng(0)
    adsh.ADSH(8, network="mlp", outer=1, recipe={"parts": 2}, device="cpu", progress=False).fit(
        rng.normal(size=(40, 4)), np.arange(40) % 2
    )
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("adsh-part")]
