"""Coding by a cluster of three nodes in this machine, one of which goes away."""

from __future__ import annotations

import os

import numpy as np
import pytest

import adsh
from adsh.data import open_source
from adsh.errors import InputError
from adsh.partitions import partitioned
from tests.data.pictures import random_images, save

pytest.importorskip("pyarrow", reason="adsh[ray] is not installed")
ray = pytest.importorskip("ray", reason="adsh[ray] is not installed")

from adsh.coded_parts import CodedParts  # noqa: E402  # after the check that it can be imported
from adsh.encode_ray import Job, encode_by_ray  # noqa: E402  # the same

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray leaves the logs of its processes open
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
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
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.nodes_to_lose = [cluster.add_node(num_cpus=1) for _ in range(2)]
    yield cluster
    ray.shutdown()
    cluster.shutdown()
    assert os.environ.get("PYTHONPATH") == before


def test_every_code_once_though_a_node_is_lost_and_into_an_index(made, cluster, tmp_path):
    root, expected = made
    job = Job.of(root / "model", partitioned(str(root / "photos"), size=5), str(tmp_path / "out"))
    lost = []

    def on_done(done, total):
        if done >= 2 and not lost:
            lost.append(cluster.nodes_to_lose.pop())
            cluster.remove_node(lost[0])

    with adsh.open_index(tmp_path / "index", bits=16, model=root / "model") as index:
        result = encode_by_ray(job, address=cluster.address, index=index, on_done=on_done)
        assert lost
        assert (result.partitions, result.items, result.bad) == (12, 60, [])
        assert len(index) == 60
        found = {}
        for keys, codes in CodedParts(job.out, 16):
            assert not set(keys) & set(found)
            found |= dict(zip(keys, codes, strict=True))
        assert found.keys() == expected.keys()
        for key, code in expected.items():
            np.testing.assert_array_equal(found[key], code)
            assert index.search(code[None], k=60)[0].distances[0] == 0
        # what is done is not done again: nothing is left, and no cluster is asked
        again = encode_by_ray(job, address="nowhere:1", index=index)
        assert (again.found, again.items) == (12, 0)


def test_pictures_that_cannot_be_read_are_left_out_where_asked(made, cluster, tmp_path):
    root, expected = made
    (tmp_path / "photos" / "cat").mkdir(parents=True)
    for path in sorted((root / "photos" / "cat").iterdir())[:4]:
        (tmp_path / "photos" / "cat" / path.name).write_bytes(path.read_bytes())
    (tmp_path / "photos" / "cat" / "broken.png").write_bytes(b"no picture")
    source = partitioned(f"file://{tmp_path / 'photos'}", size=3)
    with pytest.raises(InputError, match="broken.png"):
        encode_by_ray(Job.of(root / "model", source, str(tmp_path / "out")), address=cluster.address)
    job = Job.of(root / "model", source, str(tmp_path / "out"), skip_bad=True)
    result = encode_by_ray(job, address=cluster.address)
    assert result.partitions == 2
    assert len(result.bad) == 1
    keys = [key for keys, _ in CodedParts(job.out, 16) for key in keys]
    assert sorted(keys) == sorted(key for key in expected if key.startswith("cat"))[:4]


def test_a_cluster_that_is_not_there_is_told(made, tmp_path):
    root, _ = made
    job = Job.of(root / "model", partitioned(str(root / "photos"), size=50), str(tmp_path / "out"))
    with pytest.raises(InputError, match=r"a Ray cluster at 127.0.0.1:1 cannot be used .*: check --address"):
        encode_by_ray(job, address="127.0.0.1:1")
