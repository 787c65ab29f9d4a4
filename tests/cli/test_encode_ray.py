"""`adsh encode --engine ray` as typed; the cluster's own work is tested in tests/cluster/test_ray.py."""

from __future__ import annotations

import pytest

import adsh as package

from ..data.image_cases import random_images, save

pytest.importorskip("pyarrow", reason="adsh[ray] is not installed")


@pytest.fixture
def trained(adsh, blob_file):
    assert adsh("train", blob_file, "--bits", 12, "--outer", 1, "--network", "linear", "--out", "m").status == 0
    return "m"


def test_an_unknown_engine_is_refused(refused, trained):
    assert "--engine spark: choose local or ray" in refused("encode", trained, "digits", "--engine", "spark")


def test_what_the_cluster_did_is_reported(adsh, trained, tmp_path, monkeypatch):
    from adsh.cluster import ray_encode

    for at in range(3):
        save(tmp_path / f"images/a/{at}.png", random_images(1, 8, 8, seed=at)[0])
    calls = []

    def on_no_cluster(job, *, index, on_done, **where):
        calls.append((job.bits, job.source, index, where))
        on_done(2, 2)
        return ray_encode.Result(2, 1, items=2, seconds=0.5, unreadable=["a/2.png: no image"])

    monkeypatch.setattr(ray_encode, "encode_with_ray", on_no_cluster)
    flags = ("--engine", "ray", "--partition", 2, "--actors", 3, "--out", "coded")
    result = adsh("encode", trained, "images", *flags, "--index", "i", "--json")
    assert result.status == 0, result.err
    assert {name: result.json[name] for name in ("partitions", "there_before", "items", "bits", "unreadable")} == {
        "partitions": 2, "there_before": 1, "items": 2, "bits": 12, "unreadable": ["a/2.png: no image"],
    }  # fmt: skip
    bits, _, index, where = calls[0]
    assert (bits, index.bits, where["actors"]) == (12, 12, 3)
    assert package.open_index("i").model is not None  # codes of another model are refused from now on
    printed = adsh("encode", trained, "images", *flags).out
    assert "skipped     1" in printed
    assert "  a/2.png: no image" in printed
