"""What an index in Milvus costs: items with 48-bit codes, added and searched, on milvus-lite on this machine.

    python benchmarks/milvus.py [items]      (100,000 where none are given; needs make servers)

Codes of ADSH are few (10 distinct), codes by a network many (all drawn at random): the nearest 100 of one query, with
the distances of a plain scan. milvus-lite is one process without a cluster's indexes: its speed is not a cluster's.
Writes results/benchmarks/milvus.json.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np
import record

sys.path.insert(0, str(record.ROOT))

from tests.index.milvus_server import Server

import adsh
from adsh.hamming.bits import pack

BITS, K, BATCH = 48, 100, 10_000


def search(server, n, distinct):
    rng = np.random.default_rng(distinct)
    table = pack(rng.choice([-1, 1], size=(distinct, BITS)))
    codes = table[rng.integers(0, distinct, n)] if distinct < n else table
    query = codes[:1] ^ np.array([[1, 0, 4, 0, 0, 16]], dtype=np.uint8)  # near a code, not one
    with adsh.open_index(server.uri(f"collection=d{distinct}"), bits=BITS, timeout=60) as index:
        started = time.perf_counter()
        for start in range(0, n, BATCH):
            some = codes[start : start + BATCH]
            index.add([f"item {i}" for i in range(start, start + len(some))], some)
        adding = time.perf_counter() - started
        taken = []
        for _ in range(10):
            started = time.perf_counter()
            found = index.search(query, k=K)[0].distances
            taken.append(1000 * (time.perf_counter() - started))
    right = np.sort(np.bitwise_count(codes ^ query).sum(axis=1))[:K]
    assert (found == right).all(), "the distances are not those of a plain scan"
    figures = {
        "items": n,
        "bits": BITS,
        "distinct_codes": distinct,
        "k": K,
        "search_ms": statistics.median(taken),
        "added_per_second": n / adding,
    }
    print({name: round(value, 2) for name, value in figures.items()}, flush=True)
    return figures


def main(n):
    server = Server()
    try:
        figures = {"server": "milvus-lite 2.5.1", "search": [search(server, n, distinct) for distinct in (10, n)]}
    finally:
        server.stop()
    print(f"written to {record.write('milvus', figures, ('numpy', 'pymilvus')).relative_to(record.ROOT)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
