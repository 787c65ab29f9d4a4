"""The same bytes however they are read, and no thread left behind."""

import threading

import numpy as np
import pytest
import torch

import adsh
from adsh.data import ArrayDataset, ResizedDataset, as_items, open_source
from adsh.data.loader import DeviceLoader
from adsh.data.reader_pool import in_order, worker_count
from adsh.errors import InputError

from .image_cases import random_images, save

CPU = torch.device("cpu")


@pytest.fixture
def folder(tmp_path):
    for at in range(60):
        image = random_images(1, 16 + at % 5, 20, seed=at)[0] // 2 + 100 * (at % 2)
        save(tmp_path / "ab"[at % 2] / f"{at:02}.png", image.astype(np.uint8))
    return tmp_path


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("adsh")]


def batches(n=60, size=7):
    return np.split(np.random.default_rng(0).permutation(n), range(size, n, size))


@pytest.mark.parametrize("workers", [0, 1, 2, 5])
def test_an_epoch_gives_what_calling_gives_with_any_number_of_workers(folder, workers):
    items = as_items(ResizedDataset(open_source(folder), 16))
    with DeviceLoader(items, CPU, workers) as feed:
        for indices, inputs in zip(batches(), feed.epoch(batches()), strict=True):
            assert torch.equal(inputs, feed(indices))
            assert inputs.is_contiguous(memory_format=torch.channels_last)


def test_batches_are_read_before_they_are_requested(folder):
    dataset = ResizedDataset(open_source(folder), 16)
    items, third = as_items(dataset), threading.Event()

    def watched(indices):
        if 20 in indices:
            third.set()
        return take(indices)

    take, items.take = items.take, watched
    with DeviceLoader(items, CPU, 2) as feed:
        epoch = feed.epoch([np.arange(start, start + 10) for start in range(0, 60, 10)])
        next(epoch)
        assert third.wait(10)
        epoch.close()


def test_arrays_features_and_objects_of_unknown_kind_are_read_in_the_callers_thread(folder):
    class Rows:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            assert threading.current_thread() is threading.main_thread()
            return np.full(2, index)

    assert [inputs.tolist() for inputs in DeviceLoader(as_items(Rows()), CPU).epoch([np.array([2])])] == [[[2.0, 2.0]]]
    for source in (np.zeros((4, 3)), random_images(3), ArrayDataset(random_images(3))):
        assert DeviceLoader(as_items(source), CPU).workers == 0
    assert DeviceLoader(as_items(ResizedDataset(open_source(folder), 8)), CPU).workers == worker_count(None)


def test_a_file_that_breaks_meanwhile_is_reported_in_one_line_and_no_thread_stays(folder):
    dataset = ResizedDataset(open_source(folder), 16)
    (folder / "a/30.png").write_text("not an image")
    with (
        pytest.raises(InputError, match="30.png is no image of a known format"),
        DeviceLoader(as_items(dataset), CPU) as feed,
    ):
        list(feed.epoch(batches()))
    with pytest.raises(InputError, match="30.png"):
        adsh.ADSH(8, network="tiny", outer=1, device="cpu").fit(dataset)


@pytest.mark.parametrize("problem", [KeyboardInterrupt, RuntimeError])
def test_an_interrupted_epoch_leaves_no_thread(folder, problem):
    with pytest.raises(problem), DeviceLoader(as_items(ResizedDataset(open_source(folder), 16)), CPU, 3) as feed:  # noqa: PT012  # what raises is the loop
        for _ in feed.epoch(batches()):
            raise problem


def test_training_gives_the_same_bytes_with_any_number_of_workers(folder):
    codes = []
    for workers in (0, 1, 3):
        dataset = ResizedDataset(open_source(folder), 16)
        dataset.workers = workers
        model = adsh.ADSH(8, network="tiny", outer=2, samples=40, batch_size=9, device="cpu").fit(dataset)
        codes.append((model.database_codes_.tobytes(), model.outputs(dataset).tobytes()))
    assert codes[0] == codes[1] == codes[2]


def test_tasks_come_back_in_order_and_errors_in_their_place():
    for workers in (0, 1, 4):
        assert list(in_order(lambda x: x * x, range(50), workers)) == [x * x for x in range(50)]
        done = []
        with pytest.raises(ZeroDivisionError):
            done += in_order(lambda x: 1 // (20 - x), range(50), workers)
        some = in_order(lambda x: x, range(50), workers)
        assert [next(some), next(some)] == [0, 1]
        some.close()


def test_a_number_of_workers_that_cannot_be_is_refused():
    for wrong in (-1, 1.5, True):
        with pytest.raises(InputError, match="workers="):
            worker_count(wrong)
