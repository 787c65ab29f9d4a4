"""6,000 CIFAR-10 images coded by a Ray cluster of three nodes, one of which is killed at work.

    ADSH_DATA=... python benchmarks/ray_nodes.py

A small network learns from 2,000 of the images; `adsh encode` codes all 6,000 here, then on the cluster. When a quarter
of the partitions is done, and a node other than the driver's has a partition under way, every process of that node
gets SIGKILL. In the end every image must have its code exactly once, equal to the one coded here; given again, the
command must find everything done. The nodes share this machine: the speed is of it, not of three.
Writes results/benchmarks/ray_nodes.json.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import record
from PIL import Image
from ray.cluster_utils import Cluster

import adsh
from adsh.cluster.parquet_codes import ParquetCodes
from adsh.data import open_source

IMAGES, LEARNED, PARTITION, BITS = 6000, 2000, 50, 48
SMALL = {"num_cpus": 1, "object_store_memory": 80 * 1024**2}
AT_WORK = "MapBatches(_Actor)).submit"  # in the name that Ray gives a process while it codes a partition


def write_images(folder):
    cifar10 = open_source("cifar10").subset(np.arange(IMAGES))
    for at in range(IMAGES):
        path = folder / cifar10.classes[cifar10.labels.ids[at]] / f"{at:05}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.asarray(cifar10[at])).save(path)


def learn(photos, folder):
    some = open_source(photos).subset(np.arange(0, IMAGES, IMAGES // LEARNED))
    pixels = np.stack([some[i] for i in range(len(some))])
    adsh.ADSH(BITS, network="tiny", outer=4, progress=False).fit(pixels, some.labels, save_to=folder)


def command(*arguments):
    return [sys.executable, "-m", "adsh", "encode", *map(str, arguments), "--json"]


def run(*arguments):
    ended = subprocess.run(command(*arguments), capture_output=True, text=True, check=True)
    return json.loads(ended.stdout)


def processes(node):
    """The node's raylet and all that it started, with the names they have now."""
    found, to_see = {}, [node.all_processes["raylet"][0].process.pid]
    while to_see:
        pid = to_see.pop()
        try:
            found[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            for thread in Path(f"/proc/{pid}/task").iterdir():
                to_see += map(int, (thread / "children").read_text().split())
        except OSError:
            continue  # it ended meanwhile
    return found


def kill_one_at_work(nodes, coding):
    """SIGKILL to every process of the first node that is seen coding; what was seen of it."""
    while coding.poll() is None:
        for number, node in enumerate(nodes):
            there = processes(node)
            if any(AT_WORK in name for name in there.values()):
                for pid in there:
                    os.kill(pid, signal.SIGKILL)
                return {"node": number + 2, "processes_killed": len(there)}
    raise RuntimeError(f"it ended before a node was killed: {coding.communicate()[1]}")


def by_cluster(model, photos, out):
    cluster = Cluster(initialize_head=True, head_node_args=SMALL)
    nodes = [cluster.add_node(**SMALL) for _ in range(2)]
    arguments = (model, photos, "--engine", "ray", "--out", out, "--partition", PARTITION)
    try:
        coding = subprocess.Popen(
            command(*arguments, "--address", cluster.address), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        codes = ParquetCodes(str(out), BITS)
        while len(codes.done()) < IMAGES // PARTITION // 4 and coding.poll() is None:
            time.sleep(0.01)
        killed = kill_one_at_work(nodes, coding) | {"partitions_done_before": len(codes.done())}
        print(killed, flush=True)
        printed, problem = coding.communicate()
        assert coding.returncode == 0, problem
    finally:
        cluster.shutdown()
    again = run(*arguments, "--address", "127.0.0.1:1")  # nothing is left to do, so no cluster is needed
    assert (again["there_before"], again["items"]) == (again["partitions"], 0), again
    return json.loads(printed), killed


def main():
    os.environ |= {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        photos, model, out = folder / "photos", folder / "model", folder / "codes"
        write_images(photos)
        learn(photos, model)
        here = run(model, photos, "--out", folder / "codes.npz")
        there, killed = by_cluster(model, photos, out)
        held = np.load(folder / "codes.npz")
        expected = dict(zip(held["keys"].tolist(), held["codes"], strict=True))
        coded = [
            (key, code) for keys, codes in ParquetCodes(str(out), BITS) for key, code in zip(keys, codes, strict=True)
        ]
    times = Counter(key for key, _ in coded)
    figures = {
        "images": IMAGES,
        "nodes": 3,
        "network": "tiny",
        "bits": BITS,
        "partitions": there["partitions"],
        "killed": killed,
        "partitions_done_after": there["partitions"] - killed["partitions_done_before"],
        "images_coded_once": sum(times[key] == 1 for key in expected),
        "images_coded_twice_or_unknown": len(coded) - sum(times[key] == 1 for key in expected),
        "codes_unlike_those_coded_here": sum(bool((code != expected[key]).any()) for key, code in coded),
        "distinct_codes": len({code.tobytes() for code in expected.values()}),
        "seconds_on_the_cluster": there["seconds"],
        "seconds_here": here["seconds"],
    }
    print(figures, flush=True)
    assert figures["images_coded_once"] == IMAGES == len(coded)
    assert figures["codes_unlike_those_coded_here"] == 0
    print(f"written to {record.write('ray_nodes', figures, ('numpy', 'torch', 'ray')).relative_to(record.ROOT)}")


if __name__ == "__main__":
    main()
