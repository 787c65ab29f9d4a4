"""Encoding on a cluster of three nodes on this machine, one of which is lost."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import adsh
from adsh.cluster.partitions import partition_source
from adsh.data import open_source
from adsh.errors import InputError
from adsh.export.onnx import export
from tests.data.image_cases import random_images, save

pyarrow = pytest.importorskip("pyarrow", reason="adsh[ray] is not installed")
ray = pytest.importorskip("ray", reason="adsh[ray] is not installed")

from adsh.cluster.parquet_codes import ParquetCodes  # noqa: E402  # after the check that it can be imported
from adsh.cluster.ray_encode import Job, _Actor, _encode, _reason, encode_with_ray  # noqa: E402  # the same

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves the logs of its processes open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def encoded(tmp_path_factory):
    root = tmp_path_factory.mktemp("huge")
    for at, image in enumerate(random_images(60, 9, 9, seed=0)):
        save(root / "photos" / ("cat", "dog")[at % 2] / f"{at:02}.png", image)
    photos = open_source(root / "photos")
    model = adsh.ADSH(16, network="tiny", outer=1, progress=False).fit(
        np.stack([photos[i] for i in range(60)]), photos.labels, save_to=root / "model"
    )
    return root, dict(zip(photos.keys, model.encode(np.stack([photos[i] for i in range(60)])), strict=True))


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    before = os.environ.get("PYTHONPATH")
    os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "120")  # on a busy machine Ray's own 30 were too few
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.nodes_to_lose = [cluster.add_node(num_cpus=1) for _ in range(2)]
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    assert os.environ.get("PYTHONPATH") == before


@pytest.mark.slow  # its sibling below encodes by the same cluster; this one also loses a node of it
def test_every_code_once_though_a_node_is_lost_and_into_an_index(encoded, cluster, tmp_path):
    root, expected = encoded
    job = Job.of(root / "model", partition_source(str(root / "photos"), size=5), str(tmp_path / "out"))
    lost = []

    def on_done(done, total):
        if done >= 2 and not lost:
            lost.append(cluster.nodes_to_lose.pop())
            cluster.remove_node(lost[0])

    with adsh.open_index(tmp_path / "index", bits=16, model=root / "model") as index:
        result = encode_with_ray(job, address=cluster.address, index=index, on_done=on_done)
        assert lost
        assert (result.partitions, result.items, result.unreadable) == (12, 60, [])
        assert len(index) == 60
        found = {}
        for keys, codes in ParquetCodes(job.out, 16):
            assert not set(keys) & set(found)
            found |= dict(zip(keys, codes, strict=True))
        assert found.keys() == expected.keys()
        for key, code in expected.items():
            np.testing.assert_array_equal(found[key], code)
            assert index.search(code[None], k=60)[0].distances[0] == 0
        # finished partitions are not encoded again: nothing is left, and no cluster is contacted
        again = encode_with_ray(job, address="nowhere:1", index=index)
        assert (again.skipped, again.items) == (12, 0)


def test_unreadable_images_are_left_out_on_request(encoded, cluster, tmp_path):
    """Files at an address by torch stop at the broken one; rows of Parquet by ONNX leave it out."""
    from pyarrow import parquet

    root, expected = encoded
    files = {f"cat/{path.name}": path.read_bytes() for path in sorted((root / "photos" / "cat").iterdir())[:4]}
    files["cat/broken.png"] = b"no image"
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    for name, content in files.items():
        (tmp_path / "photos" / name).write_bytes(content)
    source = partition_source(f"file://{tmp_path / 'photos'}", size=3)
    with pytest.raises(InputError, match="broken.png"):
        encode_with_ray(Job.of(root / "model", source, str(tmp_path / "out")), address=cluster.address)
    table = pyarrow.table({"key": list(files), "image": list(files.values())})
    parquet.write_table(table, tmp_path / "photos.parquet", row_group_size=3)
    export(root / "model", tmp_path / "exported")
    source = partition_source(str(tmp_path / "photos.parquet"))
    job = Job.of(tmp_path / "exported", source, str(tmp_path / "out2"), runtime="onnx", skip_bad=True)
    result = encode_with_ray(job, address=cluster.address)
    assert (result.partitions, result.items, len(result.unreadable)) == (2, 4, 1)
    assert "broken.png" in result.unreadable[0]
    for keys, codes in ParquetCodes(job.out, 16):
        for key, code in zip(keys, codes, strict=True):
            np.testing.assert_array_equal(code, expected[key])
    again = encode_with_ray(job, address="nowhere:1")  # nothing is left to do, and what was left out is still reported
    assert again.unreadable == result.unreadable


def test_what_stops_an_actor_is_reported_in_one_line(encoded, tmp_path):
    root, _ = encoded
    model = shutil.copytree(root / "model", tmp_path / "model")
    job = Job.of(model, partition_source(str(root / "photos"), size=50), str(tmp_path / "out"))
    shutil.rmtree(model)  # as where only some machines have it
    report = _Actor(job)({"number": np.array([0])})
    assert report["problem"].tolist() == [f"{model} is not a folder: give one that a model was saved in"]
    pages = "ray::MapWorker() (pid=1)\n  File x, line 1\nRuntimeError: a bug\n\nray.exceptions.UserCodeException: UDF"
    assert _reason(RuntimeError(pages)) == "RuntimeError: a bug"


def test_gpus_that_the_cluster_does_not_have_are_not_waited_for(encoded, tmp_path):
    root, _ = encoded
    job = Job.of(root / "model", partition_source(str(root / "photos"), size=50), str(tmp_path / "out"))
    small = SimpleNamespace(cluster_resources=lambda: {"CPU": 2.0, "GPU": 1.0})
    with pytest.raises(InputError, match=r"--gpus 2: the cluster has 1 GPUs"):
        _encode(small, job, [0, 1], None, 2)
    with pytest.raises(InputError, match="1 or more actors"):
        encode_with_ray(job, actors=0)
    with pytest.raises(InputError, match="--gpus 1 with --runtime onnx, which runs on CPUs"):
        encode_with_ray(replace(job, runtime="onnx"), gpus=1)


def test_a_missing_cluster_is_reported(encoded, tmp_path):
    root, _ = encoded
    job = Job.of(root / "model", partition_source(str(root / "photos"), size=50), str(tmp_path / "out"))
    with pytest.raises(InputError, match=r"a Ray cluster at 127.0.0.1:1 cannot be used .*: check --address"):
        encode_with_ray(job, address="127.0.0.1:1")
    assert not list((tmp_path / "out").iterdir())  # which is not taken yet
