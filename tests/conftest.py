"""What every test shares: one thread, repeatable examples, and the digits that scikit-learn ships."""

from __future__ import annotations

import json
import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import pytest
import torch
from hypothesis import Phase, settings

from . import forked

settings.register_profile("adsh", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(  # make mutants: that an example fails is enough
    "mutants", settings.get_profile("adsh"), max_examples=40, phases=[Phase.explicit, Phase.generate], database=None
)
settings.load_profile("adsh")
torch.set_num_threads(1)


@dataclass(frozen=True)
class Split:
    database: np.ndarray  # (n, 64)
    labels: np.ndarray  # (n,)
    queries: np.ndarray
    query_labels: np.ndarray


@pytest.fixture(scope="session")
def digits() -> Split:
    """1,597 database points and 200 queries, split at random with a fixed seed."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(pixels))
    queries, database = order[:200], order[200:]
    return Split(pixels[database], labels[database], pixels[queries], labels[queries])


@pytest.fixture
def blobs() -> tuple[np.ndarray, np.ndarray]:
    """300 points of 3 well separated classes in 8 dimensions: enough to fit in a fraction of a second."""
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    centres = rng.normal(size=(3, 8)) * 4
    return centres[labels] + rng.normal(size=(300, 8)), labels


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports have no figures, as without matplotlib: they take seconds. tests/evaluate/test_report.py draws them."""
    from adsh.errors import MissingExtraError

    def not_drawn(*_: object) -> None:
        raise MissingExtraError("figures are left out here")

    monkeypatch.setattr("adsh.evaluate.plots.figures", not_drawn)


# Files that take longest, by the CPU seconds of each test: started first, so that all cores end together.
LONGEST = (
    *("cluster/test_ray.py", "browser", "experiments/test_reproduce.py", "export/test_onnx.py"),
    *("train/test_distributed.py", "cli/test_commands.py", "cli/test_resume.py", "docs/test_start.py"),
    *("evaluate/test_report.py", "cli/test_images.py", "cli/test_methods.py", "serve/test_schema.py"),
    *("cli/test_distributed.py", "models/test_adsh.py", "docs/test_blocks.py", "index/test_stateful.py"),
    *("methods/test_deep.py", "networks/test_cnn_f.py", "networks/test_forward.py", "networks/test_images.py"),
)


def _scope(path: str) -> str:
    """What runs in one process, of a path below tests/: a file, and all of the browser, which shares three servers."""
    return "browser" if path.startswith("browser/") else path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put Ray's file first, as its processes are forked, which threads of other tests could bring to a halt.

    After it come the files that take longest, then those with the most tests.
    """
    count = Counter(item.path for item in items)
    rank = {scope: at for at, scope in enumerate(LONGEST)}

    def order(item: pytest.Item) -> tuple[int, int]:
        scope = _scope(item.path.relative_to(Path(__file__).parent).as_posix())
        return rank.get(scope, len(rank)), -count[item.path]

    items.sort(key=order)


@pytest.hookimpl(optionalhook=True)  # there with pytest-xdist alone
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """`--dist loadfile`, but by `_scope`."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class ByScope(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _scope(super()._split_scope(nodeid).removeprefix("tests/"))

    return ByScope(config, log)


def _cpu_seconds() -> float:
    """Seconds of processor time that this process and its ended children have used."""
    of = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in of) + sum(forked.cpu_seconds)


def _timed(item: pytest.Item, phase: str) -> Iterator[None]:
    """Append what a phase of a test cost to a file in $ADSH_TEST_CPU, where that is set."""
    folder = os.environ.get("ADSH_TEST_CPU")
    cpu, wall = _cpu_seconds(), time.monotonic()
    try:
        return (yield)
    finally:
        if folder:
            row = [item.nodeid, phase, _cpu_seconds() - cpu, time.monotonic() - wall]
            with (Path(folder) / f"{os.getpid()}.jsonl").open("a") as file:
                print(json.dumps(row), file=file)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    return (yield from _timed(item, "setup"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    return (yield from _timed(item, "call"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    return (yield from _timed(item, "teardown"))
