"""A huge collection coded by many machines: its partitions through Ray Data, each by whichever actor is free.

An actor that dies with its machine is replaced, and its partition done again by another; one that is done is a file,
and is never done again.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL import Image

from ..encoders import onnx_package as onnx_folder
from ..encoders.base import Coder, open_coder
from ..errors import AdshError, InputError, MissingExtraError, ServerError, first_line
from ..hamming.bits import bytes_for
from ..index import Index
from ..models.fingerprint import model_fingerprint
from ..models.info import model_info
from ..utils.urls import is_address
from .index_sink import IndexSink
from .parquet_codes import ParquetCodes
from .partitions import PartitionedSource

T = TypeVar("T")

_AT_ONCE = 64  # pictures that go through the network together

OnDone = Callable[[int, int], None]  # partitions done, of how many


@dataclass(frozen=True)
class Job:
    """What every actor is given."""

    model: str  # its folder, or one that it was exported to, under the same path for all
    source: PartitionedSource
    out: str
    bits: int
    fingerprint: str  # of the model, as an index records it: the same for what was exported of it
    runtime: str
    device: str | None
    skip_bad: bool

    @classmethod
    def of(
        cls,
        model: Path,
        source: PartitionedSource,
        out: str,
        *,
        runtime: str = "torch",
        device: str | None = None,
        skip_bad: bool = False,
    ) -> Job:
        """A job, with what the model's folder says of it."""
        if runtime == "onnx":
            about = onnx_folder.read(model)[1]
            bits, fingerprint = about.bits, about.fingerprint
        else:
            bits, fingerprint = int(model_info(model)["bits"]), model_fingerprint(model)
        out = out if is_address(out) else str(Path(out).absolute())
        return cls(str(model.absolute()), source, out, bits, fingerprint, runtime, device, skip_bad)


@dataclass
class Result:
    """What a run did: `found` partitions were there already; `bad` are pictures that could not be read, then or now."""

    partitions: int
    found: int
    items: int = 0
    seconds: float = 0.0
    new: int = 0  # keys that the index did not have
    bad: list[str] = field(default_factory=list)


class _Actor:
    """Codes partitions, with a model that it loads once."""

    def __init__(self, job: Job) -> None:
        self._job = job

    @cached_property
    def _coder(self) -> Coder:  # not in the constructor, whose errors Ray would wrap in its own
        return open_coder(Path(self._job.model), self._job.runtime, self._job.device)

    @cached_property
    def _parts(self) -> ParquetCodes:
        return ParquetCodes(self._job.out, self._job.bits)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, list[Any]] = {"number": [], "items": [], "bad": [], "problem": []}
        for number in batch["number"]:
            try:
                items, bad = self._code(int(number))
                problem = ""
            except AdshError as reason:  # a user's, to be told in one line
                items, bad, problem = 0, [], first_line(reason)
            for name, value in zip(told, (int(number), items, "\n".join(bad), problem), strict=True):
                told[name].append(value)
        return {name: np.array(values) for name, values in told.items()}

    def _code(self, number: int) -> tuple[int, list[str]]:
        keys: list[str] = []
        bad: list[str] = []
        codes = [np.empty((0, bytes_for(self._job.bits)), dtype=np.uint8)]
        for some in _batches(self._readable(number, bad), _AT_ONCE):
            keys += [key for key, _ in some]
            codes.append(self._coder.code([image for _, image in some]).codes)
        self._parts.write(number, keys, np.concatenate(codes), bad)
        return len(keys), bad

    def _readable(self, number: int, bad: list[str]) -> Iterator[tuple[str, Image.Image]]:
        for key, picture in self._job.source.read(number):
            try:
                yield key, picture()
            except InputError as problem:
                if not self._job.skip_bad:
                    raise
                bad.append(first_line(problem))


def encode_with_ray(
    job: Job,
    *,
    address: str | None = None,
    actors: int | None = None,
    gpus: float = 0.0,
    index: Index | None = None,
    on_done: OnDone | None = None,
) -> Result:
    """Codes every partition that is not done yet, on the cluster at `address` or on this machine.

    actors    at most so many; one a CPU (or a GPU, with `gpus` for each) that the cluster has, unless given
    index     also gets the codes of keys that it has not, partition by partition; what stopped in between goes on
    """
    if gpus < 0 or (actors is not None and actors < 1):
        raise InputError(f"--gpus {gpus}, --actors {actors}: give 0 or more GPUs, and 1 or more actors")
    if gpus and job.runtime == "onnx":
        raise InputError(f"--gpus {gpus:g} with --runtime onnx, which codes on CPUs: leave out one of them")
    ray = _ray()
    started = time.perf_counter()
    parts = ParquetCodes(job.out, job.bits)
    found = parts.done()
    missing = [number for number in range(job.source.count) if number not in found]
    own = not ray.is_initialized()
    if missing and own:
        _connect(ray, address)  # before the folder is claimed for this run
    try:
        parts.begin({"model": job.fingerprint, "bits": job.bits, **job.source.told()})
        result = Result(job.source.count, len(found))
        into = IndexSink(index, parts)
        into.put(found)
        if job.skip_bad:
            result.bad = [line for number in sorted(found) for line in parts.left_out(number)]
        report = on_done or (lambda done, total: None)
        done = len(found)
        report(done, result.partitions)
        for row in _coded(ray, job, missing, actors, gpus) if missing else ():
            if row["problem"]:
                raise InputError(str(row["problem"]))
            result.items += int(row["items"])
            result.bad += [line for line in str(row["bad"]).split("\n") if line]
            into.put([int(row["number"])])
            done += 1
            report(done, result.partitions)
    except ray.exceptions.RayError as problem:
        raise ServerError(
            f"the Ray cluster could not go on ({_reason(problem)}): what is done is kept; give the same again to go on"
        ) from None
    finally:
        if missing and own:
            ray.shutdown()
    result.seconds, result.new = time.perf_counter() - started, into.new
    return result


def _coded(ray: Any, job: Job, numbers: list[int], actors: int | None, gpus: float) -> Iterator[dict[str, Any]]:
    """What the actors tell, partition by partition."""
    resources = ray.cluster_resources()
    there = int(resources.get("GPU", 0) / gpus) if gpus else int(resources.get("CPU", 1))
    if not there:  # Ray would wait for them
        raise InputError(f"--gpus {gpus}: the cluster has {resources.get('GPU', 0):g} GPUs; give less, or leave it out")
    most = max(1, min(actors or there, len(numbers)))
    dataset = ray.data.from_items([{"number": number} for number in numbers], override_num_blocks=len(numbers))
    coded = dataset.map_batches(
        _Actor,
        fn_constructor_args=(job,),
        batch_size=1,
        num_gpus=gpus or None,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=most),
    )
    rows: Iterator[dict[str, Any]] = iter(coded.iter_rows())
    return rows


def _reason(problem: BaseException) -> str:
    """What was raised in an actor, out of the pages that Ray tells of it."""
    raised = re.search(r"^[\w.]*(Error|Exception)\b.*", str(problem), re.MULTILINE)
    return raised[0] if raised else first_line(problem)


def _connect(ray: Any, address: str | None) -> None:
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        _reach(address)  # Ray itself would try for minutes
        ray.init(address=address, log_to_driver=False, include_dashboard=False, configure_logging=False)
    except Exception as problem:  # of many classes, by what was not reached
        at = f"a Ray cluster at {address}" if address else "Ray on this machine"
        raise InputError(f"{at} cannot be used ({first_line(problem)}): check --address") from None


def _reach(address: str | None) -> None:
    """Raises where nobody listens at an address that names a port."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would tell its makers of every run
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtraError("--engine ray needs Ray: pip install 'adsh[ray]'") from None
    ray.data.DataContext.get_current().enable_progress_bars = False
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is told by who called
    return ray


def _batches(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while some := list(itertools.islice(items, size)):
        yield some
