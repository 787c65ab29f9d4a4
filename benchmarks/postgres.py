"""What the table of distinct codes is worth in PostgreSQL, and what a killed server loses.

    python benchmarks/postgres.py [items [kills]]      (1,000,000 and 20 where none are given)

Search: items with 48-bit ADSH codes, 10, 100 and 1,000 distinct ones, the nearest 100 of one query: `index.search`
beside pgvector's scan of the same items, ORDER BY code <~> query LIMIT 100, in the same run on the same server, with
its settings as they come (parallel workers included). Both must give the same distances. Last, random codes, nearly
all distinct, where the table of codes is worth nothing.
Kills: SIGKILL of every process of the server while batches are added; after the restart every item of an acknowledged
batch has to be there with its code, and of the batch under way all or none. The first failure ends the run.
Writes results/benchmarks/postgres.json.
"""

from __future__ import annotations

import random
import statistics
import sys
import threading
import time

import numpy as np
import psycopg
import record

sys.path.insert(0, str(record.ROOT))

from tests.index.postgres_server import Server

import adsh
from adsh.hamming.bits import pack
from adsh.index.postgres.search import to_bits

BITS, K, BATCH = 48, 100, 50_000


def codes_of(n, distinct, rng):
    table = pack(rng.choice([-1, 1], size=(distinct, BITS)))
    return table[rng.integers(0, distinct, n)]


def median_ms(action, times):
    action()
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        action()
        taken.append(1000 * (time.perf_counter() - started))
    return statistics.median(taken)


def search(server, n, distinct):
    rng = np.random.default_rng(distinct)
    codes = codes_of(n, distinct, rng)
    query = codes[:1] ^ np.array([[1, 0, 4, 0, 0, 16]], dtype=np.uint8)  # near a code, not one
    with adsh.open_index(server.uri(query=f"table=d{distinct}"), bits=BITS) as index:
        started = time.perf_counter()
        for start in range(0, n, BATCH):
            some = codes[start : start + BATCH]
            index.add([f"item {i}" for i in range(start, start + len(some))], some)
        adding = time.perf_counter() - started
        index.compact()
        ours = median_ms(lambda: index.search(query, k=K), 50)
        filtered = median_ms(lambda: index.within(query, radius=8, limit=K), 20)
        found = index.search(query, k=K)[0].distances.tolist()
        info = index.info()
    text = to_bits(query, BITS)[0]
    with psycopg.connect(server.uri(), autocommit=True) as connection:
        statement = f"SELECT key, code <~> '{text}'::bit({BITS}) AS d FROM d{distinct}_items ORDER BY d LIMIT {K}"
        plain = median_ms(lambda: connection.execute(statement).fetchall(), 7)
        assert [row[1] for row in connection.execute(statement)] == found, "the two searches differ"
        connection.execute("SET max_parallel_workers_per_gather = 0")
        serial = median_ms(lambda: connection.execute(statement).fetchall(), 5)
        connection.execute(f"DROP TABLE d{distinct}_items, d{distinct}_codes, d{distinct}_facts")
    figures = {
        "items": n,
        "bits": BITS,
        "distinct_codes": info["distinct_codes"],
        "k": K,
        "search_ms": ours,
        "within_ms": filtered,
        "plain_scan_ms": plain,
        "plain_scan_one_process_ms": serial,
        "times_faster": plain / ours,
        "added_per_second": n / adding,
        "bytes_an_item": info["bytes"] / n,
    }
    print({name: round(value, 2) for name, value in figures.items()}, flush=True)
    return figures


def kill_once(server, seed):
    """One index under load, a killed server, and what is there afterwards."""
    draw = random.Random(seed)
    rng = np.random.default_rng(seed)
    acknowledged, under_way = {}, {}
    with adsh.open_index(server.uri(query=f"table=k{seed}"), bits=BITS) as index:
        killer = threading.Timer(draw.uniform(0.05, 1.0), server.kill)
        killer.start()
        try:
            while True:
                keys = [f"item {len(acknowledged) + i}" for i in range(draw.choice([1, 50, 1000]))]
                codes = codes_of(len(keys), 20, rng)
                under_way = dict(zip(keys, (code.tobytes() for code in codes), strict=True))
                index.add(keys, codes)
                acknowledged |= under_way
        except adsh.AdshError:
            pass
        killer.join()
        server.start()
        there = {item.key: item.code for item in index.items()}
        assert there in (acknowledged, acknowledged | under_way), (
            "an acknowledged item is lost, or a batch is half there"
        )
        assert index.verify() == []
    return len(acknowledged)


def main(n, kills):
    server = Server("shared_buffers=1GB", "max_wal_size=4GB")
    try:
        searches = [search(server, n, distinct) for distinct in (10, 100, 1000, n)]
        kept = []
        for seed in range(kills):
            kept.append(kill_once(server, seed))
            print(f"kill {seed + 1}: {kept[-1]} acknowledged items, all there", flush=True)
    finally:
        server.stop()
    figures = {
        "search": searches,
        "kills": {"kills": kills, "acknowledged_items": sum(kept), "lost": 0, "half_written_batches": 0},
    }
    print(f"written to {record.write('postgres', figures, ('numpy', 'psycopg')).relative_to(record.ROOT)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000, int(sys.argv[2]) if len(sys.argv) > 2 else 20)
