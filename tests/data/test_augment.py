"""Random augmentation: a batch gives what each image gives by itself, with the same parameters."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from adsh.data.augment import Chain, RandomFlip, RandomResizedCrop, RandomShift
from adsh.errors import InputError

from ..networks.numbers_by_name import sample_image

ALL = {
    "shift": RandomShift(4),
    "flip": RandomFlip(),
    "crop": RandomResizedCrop(24),
    "enlarging crop": RandomResizedCrop(80, scale=(0.3, 1)),
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def batch():
    """(9, 3, 33, 40) in 0 .. 1, of uint8 values."""
    images = np.stack([np.roll(sample_image(33, 40, 3), i * 7, axis=1) for i in range(9)])
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255


@pytest.mark.parametrize("name", list(ALL))
def test_the_same_generator_state_gives_the_same_images_and_each_its_own_change(name, batch):
    change = ALL[name]
    first, again = change(batch, generator(1)), change(batch, generator(1))
    assert torch.equal(first, again)
    assert not torch.equal(first, change(batch, generator(2)))
    same = change(batch[:1].expand(9, -1, -1, -1), generator(1))
    assert len({image.numpy().tobytes() for image in same}) > 1


@pytest.mark.parametrize("name", list(ALL))
def test_a_batch_equals_its_images_one_by_one(name, batch):
    change = ALL[name]
    drawn = change.draw(len(batch), 33, 40, generator(3))
    together = change.apply(batch, drawn)
    alone = torch.cat([change.apply(batch[i : i + 1], drawn[i : i + 1]) for i in range(len(batch))])
    assert torch.allclose(together, alone, atol=1e-6)
    last_first = change.apply(batch.contiguous(memory_format=torch.channels_last), drawn)
    assert torch.allclose(together, last_first, atol=1e-6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device")
@pytest.mark.parametrize("name", list(ALL))
def test_a_batch_on_a_gpu_is_changed_there_without_waiting_for_it(name, batch):
    change, images = ALL[name], batch.cuda()
    on_device = torch.Generator(device="cuda").manual_seed(0)
    change(images, on_device)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        drawn = change.draw(len(images), 33, 40, on_device)
        found = change.apply(images, drawn)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.allclose(found.cpu(), change.apply(batch, drawn.cpu()), atol=1e-5)


@given(seed=st.integers(0, 1000), pixels=st.integers(0, 6), height=st.integers(1, 9), width=st.integers(1, 9))
def test_a_shift_is_a_crop_of_the_image_padded_by_its_edge(seed, pixels, height, width):
    images = np.random.default_rng(seed).integers(0, 256, (4, 3, height, width), dtype=np.uint8)
    change = RandomShift(pixels)
    drawn = change.draw(4, height, width, generator(seed))
    assert int(drawn.abs().max()) <= pixels
    found = change.apply(torch.from_numpy(images), drawn).numpy()
    padded = np.pad(images, ((0, 0), (0, 0), (pixels, pixels), (pixels, pixels)), mode="edge")
    for i, (down, right) in enumerate(drawn.tolist()):
        top, left = pixels + down, pixels + right
        assert np.array_equal(found[i], padded[i, :, top : top + height, left : left + width])


@pytest.mark.parametrize("size", [16, 64])
def test_a_resized_crop_is_torchs_own_resizing_of_the_box(size, batch):
    change = RandomResizedCrop(size)
    drawn = change.draw(len(batch), 33, 40, generator(5))
    found = change.apply(batch, drawn)
    for i, (top, left, height, width) in enumerate(drawn.tolist()):
        box = batch[i : i + 1, :, top : top + height, left : left + width]
        expected = functional.interpolate(box, (size, size), mode="bilinear", antialias=True)
        assert torch.allclose(found[i : i + 1], expected, atol=1e-5)


@given(seed=st.integers(0, 1000), height=st.integers(1, 60), width=st.integers(1, 60))
def test_boxes_lie_inside_the_image_and_keep_to_the_ranges(seed, height, width):
    change = RandomResizedCrop(8, scale=(0.25, 0.8))
    top, left, tall, wide = change.draw(50, height, width, generator(seed)).unbind(dim=1)
    assert bool(((top >= 0) & (left >= 0) & (tall >= 1) & (wide >= 1)).all())
    assert bool(((top + tall <= height) & (left + wide <= width)).all())
    if min(height, width) > 30 and max(height, width) < 1.3 * min(height, width):  # boxes that fit are found
        share, aspect = tall * wide / (height * width), wide / tall
        assert bool(((share > 0.22) & (share < 0.86)).all())
        assert bool(((aspect > 0.68) & (aspect < 1.46)).all())


def test_a_long_image_falls_back_to_its_middle():
    boxes = RandomResizedCrop(8, scale=(1, 1)).draw(3, 10, 100, generator())
    assert boxes.tolist() == [[0, 43, 10, 13]] * 3


def test_half_of_the_images_are_flipped():
    drawn = RandomFlip().draw(4000, 1, 1, generator())
    assert 0.46 < drawn.float().mean() < 0.54
    assert not RandomFlip(0).draw(50, 1, 1, generator()).any()
    assert RandomFlip(1).draw(50, 1, 1, generator()).all()


def test_a_chain_applies_one_after_the_other(batch):
    chain = Chain([RandomShift(2), RandomFlip(), RandomResizedCrop(20)])
    assert chain(batch, generator()).shape == (9, 3, 20, 20)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RandomShift(-1),
        lambda: RandomFlip(2),
        lambda: RandomResizedCrop(0),
        lambda: RandomResizedCrop(8, scale=(0.9, 0.1)),
        lambda: RandomResizedCrop(8)(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), generator()),
        lambda: RandomFlip()(torch.zeros(4, 4), generator()),
    ],
)
def test_what_cannot_be_used_is_refused(make):
    with pytest.raises(InputError):
        make()
