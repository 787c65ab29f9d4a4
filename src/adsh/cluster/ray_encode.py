"""Encode a large collection on many machines: Ray Data distributes its partitions over actors.

If an actor dies with its machine, another one takes over its partition. A finished partition is a file, and is never
encoded again.
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

from ..encoders import onnx_package
from ..encoders.base import Encoder, open_encoder
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

_BATCH = 64  # images per forward pass

OnDone = Callable[[int, int], None]  # partitions done, of how many


@dataclass(frozen=True)
class Job:
    """What every actor receives."""

    model: str  # its folder, or that of an export, with the same path on every machine
    source: PartitionedSource
    out: str
    bits: int
    fingerprint: str  # of the model, as an index records it; an export has the same
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
        """Describe a job, with the bits and the fingerprint of the model.

        Args:
            model: the folder of the model or, with the runtime "onnx", of its export.
            source: what to encode.
            out: a folder or address for the codes.
            runtime: "torch" or "onnx".
            device: where the model runs; chosen automatically if None.
            skip_bad: whether to leave out images that cannot be read.

        Returns:
            The job, with absolute paths.
        """
        if runtime == "onnx":
            package = onnx_package.read(model)[1]
            bits, fingerprint = package.bits, package.fingerprint
        else:
            bits, fingerprint = int(model_info(model)["bits"]), model_fingerprint(model)
        out = out if is_address(out) else str(Path(out).absolute())
        return cls(str(model.absolute()), source, out, bits, fingerprint, runtime, device, skip_bad)


@dataclass
class Result:
    """What a run did."""

    partitions: int
    skipped: int  # partitions that were finished before
    items: int = 0
    seconds: float = 0.0
    added: int = 0  # keys that the index did not have
    unreadable: list[str] = field(default_factory=list)  # a line for each image left out, now or before


class _Actor:
    """Encodes partitions with a model that it loads once."""

    def __init__(self, job: Job) -> None:
        self._job = job

    @cached_property
    def _encoder(self) -> Encoder:  # not in the constructor, whose errors Ray would wrap in its own
        return open_encoder(Path(self._job.model), self._job.runtime, self._job.device)

    @cached_property
    def _output(self) -> ParquetCodes:
        return ParquetCodes(self._job.out, self._job.bits)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        columns: dict[str, list[Any]] = {"number": [], "items": [], "unreadable": [], "problem": []}
        for number in batch["number"]:
            try:
                items, unreadable = self._encode(int(number))
                problem = ""
            except AdshError as reason:  # a user's mistake, to be reported in one line
                items, unreadable, problem = 0, [], first_line(reason)
            for name, value in zip(columns, (int(number), items, "\n".join(unreadable), problem), strict=True):
                columns[name].append(value)
        return {name: np.array(values) for name, values in columns.items()}

    def _encode(self, number: int) -> tuple[int, list[str]]:
        """Encode a partition, and return how many items it has and a line for each image left out."""
        keys: list[str] = []
        unreadable: list[str] = []
        codes = [np.empty((0, bytes_for(self._job.bits)), dtype=np.uint8)]
        for batch in _batches(self._readable(number, unreadable), _BATCH):
            keys += [key for key, _ in batch]
            codes.append(self._encoder.encode([image for _, image in batch]).codes)
        self._output.write(number, keys, np.concatenate(codes), unreadable)
        return len(keys), unreadable

    def _readable(self, number: int, unreadable: list[str]) -> Iterator[tuple[str, Image.Image]]:
        for key, read_image in self._job.source.read(number):
            try:
                yield key, read_image()
            except InputError as problem:
                if not self._job.skip_bad:
                    raise
                unreadable.append(first_line(problem))


def encode_with_ray(
    job: Job,
    *,
    address: str | None = None,
    actors: int | None = None,
    gpus: float = 0.0,
    index: Index | None = None,
    on_done: OnDone | None = None,
) -> Result:
    """Encode every partition that is not finished yet.

    Args:
        job: what to encode, and how.
        address: the Ray cluster; this machine if neither it nor $RAY_ADDRESS is given.
        actors: how many actors to start at most; by default one per CPU, or per `gpus` GPUs, of the cluster.
        gpus: how many GPUs each actor has.
        index: also receives the codes of keys that it does not have, partition by partition.
        on_done: called with the number of finished partitions, and of all.

    Returns:
        What was encoded, skipped and left out.

    Raises:
        InputError: a value is wrong, the cluster cannot be reached, or an image cannot be read.
        ServerError: the cluster failed; what is finished is kept.
    """
    if gpus < 0 or (actors is not None and actors < 1):
        raise InputError(f"--gpus {gpus}, --actors {actors}: give 0 or more GPUs, and 1 or more actors")
    if gpus and job.runtime == "onnx":
        raise InputError(f"--gpus {gpus:g} with --runtime onnx, which runs on CPUs: leave out one of them")
    ray = _ray()
    started = time.perf_counter()
    output = ParquetCodes(job.out, job.bits)
    finished = output.done()
    missing = [number for number in range(job.source.count) if number not in finished]
    start_ray = bool(missing) and not ray.is_initialized()
    if start_ray:
        _connect(ray, address)  # before the folder is taken for this run
    try:
        output.begin({"model": job.fingerprint, "bits": job.bits, **job.source.describe()})
        result = Result(job.source.count, len(finished))
        sink = IndexSink(index, output)
        sink.ingest(finished)
        if job.skip_bad:
            result.unreadable = [line for number in sorted(finished) for line in output.left_out(number)]
        report = on_done or (lambda done, total: None)
        done = len(finished)
        report(done, result.partitions)
        for row in _encode(ray, job, missing, actors, gpus) if missing else ():
            if row["problem"]:
                raise InputError(str(row["problem"]))
            result.items += int(row["items"])
            result.unreadable += [line for line in str(row["unreadable"]).split("\n") if line]
            sink.ingest([int(row["number"])])
            done += 1
            report(done, result.partitions)
    except ray.exceptions.RayError as problem:
        raise ServerError(
            f"the Ray cluster failed ({_reason(problem)}): finished partitions are kept; repeat the command to continue"
        ) from None
    finally:
        if start_ray:
            ray.shutdown()
    result.seconds, result.added = time.perf_counter() - started, sink.added
    return result


def _encode(ray: Any, job: Job, numbers: list[int], actors: int | None, gpus: float) -> Iterator[dict[str, Any]]:
    """Encode these partitions on the cluster, and return what the actors report of each.

    Args:
        ray: the ray module, connected to a cluster.
        job: what every actor receives.
        numbers: of the partitions.
        actors: how many to start at most; None for as many as the cluster has room for.
        gpus: how many GPUs each actor has.

    Returns:
        An iterator of one row for each partition, as it is finished.
    """
    resources = ray.cluster_resources()
    available = int(resources.get("GPU", 0) / gpus) if gpus else int(resources.get("CPU", 1))
    if not available:  # Ray would wait for them
        raise InputError(f"--gpus {gpus}: the cluster has {resources.get('GPU', 0):g} GPUs; give less, or leave it out")
    most = max(1, min(actors or available, len(numbers)))
    dataset = ray.data.from_items([{"number": number} for number in numbers], override_num_blocks=len(numbers))
    encoded = dataset.map_batches(
        _Actor,
        fn_constructor_args=(job,),
        batch_size=1,
        num_gpus=gpus or None,
        compute=ray.data.ActorPoolStrategy(min_size=1, max_size=most),
    )
    rows: Iterator[dict[str, Any]] = iter(encoded.iter_rows())
    return rows


def _reason(problem: BaseException) -> str:
    """The error that was raised in an actor, out of Ray's long message."""
    raised = re.search(r"^[\w.]*(Error|Exception)\b.*", str(problem), re.MULTILINE)
    return raised[0] if raised else first_line(problem)


def _connect(ray: Any, address: str | None) -> None:
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        _reach(address)  # Ray itself would try for minutes
        ray.init(address=address, log_to_driver=False, include_dashboard=False, configure_logging=False)
    except Exception as problem:  # Ray raises many classes here
        name = f"a Ray cluster at {address}" if address else "Ray on this machine"
        raise InputError(f"{name} cannot be used ({first_line(problem)}): check --address") from None


def _reach(address: str | None) -> None:
    """Raise if nothing listens at an address that names a port."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would report every run to its makers
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtraError("--engine ray needs Ray: pip install 'adsh[ray]'") from None
    ray.data.DataContext.get_current().enable_progress_bars = False
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # the caller reports what matters
    return ray


def _batches(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while batch := list(itertools.islice(items, size)):
        yield batch
