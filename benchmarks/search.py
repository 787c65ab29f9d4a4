"""Times the index against faiss called directly, in one run over the same codes, results compared.

    python benchmarks/search.py [adsh|random|rerank|adding ...]      (all of them where none is named)

adsh     10,000,000 items of 48 bits with 10 and 2,000 distinct codes: one query and batches of 1,000, k = 100, keys
         included, against faiss IndexBinaryFlat (codes padded to 8 bytes, use_heap=False); opening the index, opening
         it without its snapshot, and the memory it takes
random   10,000,000 random codes of 64 bits, the same, with faiss and with NumPy alone behind the index
rerank   1,000,000 items in buckets of 100,000, ordered by vectors inside the bucket
adding   1,000,000 items in batches of 10,000 and of 50, each durable

ADSH_ITEMS=1000000 makes the first two smaller. Every index is made in a folder of its own under the current directory
and removed. Prints lines and writes results/benchmarks/search_CASE.json.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import faiss
import numpy as np
import record

import adsh
from adsh.hamming import scan

ITEMS = int(os.environ.get("ADSH_ITEMS", "10000000"))
K, BATCH = 100, 1000


def make_codes(rng, n, bits, distinct):
    if distinct is None:
        return rng.integers(0, 256, size=(n, bits // 8), dtype=np.uint8)
    table = rng.integers(0, 256, size=(distinct, bits // 8), dtype=np.uint8)
    return table[rng.integers(0, distinct, n)]


def make_queries(rng, codes, n):
    """Codes of the database with 5 % of their bits flipped, as a network codes unseen images."""
    some = codes[rng.integers(0, len(codes), n)]
    return some ^ np.packbits(rng.random((n, codes.shape[1] * 8)) < 0.05, axis=1)


def padded(codes):
    return np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))


def name(number):
    return f"item{number:08d}"


def fill(folder, codes, bits, at_a_time, vectors=None):
    """Adds all codes; the seconds it took, the closing included."""
    start = time.perf_counter()
    with adsh.open_index(folder, bits=bits) as index:
        for at in range(0, len(codes), at_a_time):
            stop = min(at + at_a_time, len(codes))
            some = None if vectors is None else vectors[at:stop]
            index.add([name(i) for i in range(at, stop)], codes[at:stop], vectors=some)
    return time.perf_counter() - start


def alternate(ways, rounds):
    """The least seconds of each way, taken in turns so that a busy moment of the machine strikes all of them."""
    best, given = {}, {}
    for _ in range(rounds):
        for label, way in ways.items():
            start = time.perf_counter()
            given[label] = way()
            seconds = time.perf_counter() - start
            best[label] = min(best.get(label, seconds), seconds)
    return best, given


def compare(index, codes, queries, rounds=7, batch_rounds=2):
    """Seconds of the index and of faiss for one query and for a batch, with one thread and with all."""
    flat = faiss.IndexBinaryFlat(padded(codes[:1]).shape[1] * 8)
    flat.use_heap = False
    flat.add(padded(codes))
    whole = padded(queries)
    threads = os.cpu_count() or 1

    def with_threads(count, way):
        def run():
            faiss.omp_set_num_threads(count)
            return way()

        return run

    figures = {"threads_of_a_batch": threads}
    for one, query in zip(index.search(queries[:3], k=K), queries, strict=False):  # the keys, in order of insertion
        exact = np.bitwise_count(padded(codes).view(np.uint64) ^ padded(query[None]).view(np.uint64)).sum(axis=1)
        assert one.keys == [name(i) for i in np.argsort(exact, kind="stable")[:K]]
    each = iter(range(10**9))

    def one_query():
        at = next(each) % len(queries)
        return index.search(queries[at : at + 1], k=K)

    ones, _ = alternate(
        {
            "faiss": with_threads(1, lambda: flat.search(whole[:1], K)),
            "index": with_threads(1, lambda: [one_query() for _ in range(20)]),
        },
        rounds,
    )
    figures["one_query_faiss_s"] = ones["faiss"]
    figures["one_query_index_s"] = ones["index"] / 20
    batches, given = alternate(
        {
            "faiss": with_threads(threads, lambda: flat.search(whole, K)),
            "index": with_threads(threads, lambda: index.search(queries, k=K)),
        },
        batch_rounds,
    )
    assert all((one.distances == right).all() for one, right in zip(given["index"], given["faiss"][0], strict=True))
    figures["batch_faiss_s_a_query"] = batches["faiss"] / len(queries)
    figures["batch_index_s_a_query"] = batches["index"] / len(queries)
    figures["one_query_times_faster"] = figures["one_query_faiss_s"] / figures["one_query_index_s"]
    figures["batch_times_faster"] = figures["batch_faiss_s_a_query"] / figures["batch_index_s_a_query"]
    return figures


def in_a_process(what, folder):
    done = subprocess.run(
        [sys.executable, __file__, "--one", what, str(folder)], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def opened(folder):
    """Opening an index and searching it once: seconds, and the memory of a process that does nothing else."""
    before = record.peak_bytes()
    start = time.perf_counter()
    index = adsh.open_index(folder)
    seconds = time.perf_counter() - start
    query = np.zeros((1, (index.bits + 7) // 8), dtype=np.uint8)
    assert len(index.search(query, k=K)[0]) == K
    data = len(index) * (len(name(0)) + (index.bits + 7) // 8)
    memory = record.peak_bytes() - before
    return {"seconds": seconds, "peak_memory_bytes": memory, "times_codes_and_keys": memory / data}


def measure_adsh(folder):
    rows = []
    for distinct in (10, 2000):
        rng = np.random.default_rng(0)
        codes = make_codes(rng, ITEMS, 48, distinct)
        place = folder / str(distinct)
        filled = fill(place, codes, 48, 100_000)
        with adsh.open_index(place) as index:
            index.compact()
        opening = in_a_process("open", place)
        with adsh.open_index(place) as index:
            info = index.info()
            row = {"case": "adsh", "items": ITEMS, "bits": 48, "distinct": distinct, "search": info["search"]}
            row |= compare(index, codes, make_queries(rng, codes, BATCH))
            row |= {"filling_s": filled, "bytes_on_disk": info["bytes"]}
        row["opening"] = opening
        if distinct == 10:
            for path in place.glob("snapshot-*"):
                path.unlink()
            row["opening_without_snapshot"] = in_a_process("rebuild", place)
        shutil.rmtree(place)
        rows.append(row)
        show(row)
    return rows


def measure_random(folder):
    rng = np.random.default_rng(0)
    codes = make_codes(rng, ITEMS, 64, None)
    filled = fill(folder / "random", codes, 64, 100_000)
    with adsh.open_index(folder / "random") as index:
        index.compact()
    row = {"case": "random", "items": ITEMS, "bits": 64, "distinct": None, "filling_s": filled}
    row["opening"] = in_a_process("open", folder / "random")
    with adsh.open_index(folder / "random") as index:
        row["search"] = index.info()["search"]
        queries = rng.integers(0, 256, size=(BATCH, 8), dtype=np.uint8)
        row |= compare(index, codes, queries)
        with_faiss, scan.faiss_module = scan.faiss_module, lambda: None
        best, _ = alternate({"numpy": lambda: index.search(queries[:1], k=K)}, 20)
        scan.faiss_module = with_faiss
        row["one_query_numpy_s"] = best["numpy"]
        row["numpy_times_faiss"] = best["numpy"] / row["one_query_faiss_s"]
        best, _ = alternate({"radius": lambda: index.within(queries[:1], radius=2)}, 10)
        row["within_radius_2_s"] = best["radius"]
    shutil.rmtree(folder / "random")
    show(row)
    return [row]


def measure_rerank(folder):
    rng = np.random.default_rng(0)
    n = min(ITEMS, 1_000_000)
    codes = make_codes(rng, n, 48, 10)
    features = rng.normal(size=(n, 128)).astype(np.float32)
    fill(folder / "rerank", codes, 48, 50_000, features)
    with adsh.open_index(folder / "rerank") as index:
        query, vector = codes[:1], features[:1] + 0.1
        ways = {
            "rerank": lambda: index.search(query, k=K, vectors=vector, rerank=True),
            "plain": lambda: index.search(query, k=K),
        }
        assert ways["rerank"]()[0].keys[0] == name(0)
        best, _ = alternate(ways, 30)
        size = int((codes == codes[0]).all(axis=1).sum())
    shutil.rmtree(folder / "rerank")
    row = {"case": "rerank", "items": n, "bucket": size, "one_query_s": best["rerank"], "plain_s": best["plain"]}
    show(row)
    return [row]


def one_fsync(folder, times=300):
    start = time.perf_counter()
    with (folder / "synced").open("wb") as file:
        for _ in range(times):
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
    return (time.perf_counter() - start) / times


def measure_adding(folder):
    codes = make_codes(np.random.default_rng(0), 1_000_000, 48, 2000)
    row = {"case": "adding", "items": len(codes)}
    for at_a_time in (10_000, 50):
        synced = [one_fsync(folder)]
        busy = time.process_time()
        row[f"in_batches_of_{at_a_time}_s"] = fill(folder / "adding", codes, 48, at_a_time)
        row[f"in_batches_of_{at_a_time}_processor_s"] = time.process_time() - busy
        synced.append(one_fsync(folder))
        row[f"in_batches_of_{at_a_time}_fsync_s"] = synced  # of the disk alone, before and after: one a commit
        shutil.rmtree(folder / "adding")
    show(row)
    return [row]


def show(row):
    print(json.dumps(row), flush=True)


CASES = {"adsh": measure_adsh, "random": measure_random, "rerank": measure_rerank, "adding": measure_adding}


def main(names):
    if unknown := set(names) - set(CASES):
        sys.exit(f"{unknown.pop()!r} is not a case: choose from {', '.join(CASES)}\n{__doc__}")
    for case in names or CASES:
        with tempfile.TemporaryDirectory(dir=".") as folder:
            rows = CASES[case](Path(folder))
        if ITEMS == 10_000_000:
            path = record.write(f"search_{case}", rows, ("numpy", "faiss-cpu"))
            print(f"written to {path.relative_to(record.ROOT)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        import warnings

        warnings.simplefilter("ignore")  # a missing snapshot gives a warning, and is intended here
        print(json.dumps(opened(sys.argv[3])))
    else:
        main(sys.argv[1:])
