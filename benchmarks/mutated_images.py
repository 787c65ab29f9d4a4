"""Sends thousands of broken images to a real server: none may crash it, fail it, or take more than the limits allow.

    python benchmarks/mutated_images.py [count]      (2,000 where none is given)

Images of every format, small and large, are cut, and their bytes flipped, repeated, swapped and overwritten; some
tell of more pixels than they have. Each is sent to /v1/encode. The first answer that is neither 200 nor 422, or takes
more than 10 s, ends the run, and so does a server that holds a gigabyte more than before.
Writes results/benchmarks/mutated_images.json.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import record

from serve import TOKEN, Server, make_codes, make_index, make_model

sys.path.insert(0, str(record.ROOT))

import numpy as np
from tests.serve.mutations import mutated, valid_images

from adsh.client import Client, ServiceError


def main(count):
    originals = valid_images()
    rng = np.random.default_rng(0)
    statuses, slowest, kinds = Counter(), 0.0, Counter()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        model = make_model(Path(folder) / "tiny", "tiny", 32)
        index = make_index(Path(folder) / "index", make_codes(rng, 1000, 48, 10))
        with Server(model, index) as server, Client(server.url, token=TOKEN) as client:
            for data in originals.values():
                client.encode(data)
            before, most = server.memory(), 0
            for at in range(count):
                name = list(originals)[at % len(originals)]
                started = time.perf_counter()
                try:
                    client.encode(mutated(originals[name], rng))
                    status, said = 200, ""
                except ServiceError as problem:
                    status, said = problem.status, str(problem)
                assert status in (200, 422), f"mutation {at} of {name}: {said}"
                statuses[status] += 1
                kinds[f"{name}: {status}"] += 1
                slowest = max(slowest, time.perf_counter() - started)
                assert slowest < 10, f"mutation {at} of {name} took {slowest:.1f} s"
                if at % 20 == 0:
                    most = max(most, server.memory() - before)
                    assert most < 1 << 30, f"after mutation {at} the server holds {most:,} bytes more"
            assert server.process.poll() is None
    figures = {
        "pictures": count,
        "statuses": dict(statuses),
        "by_format": dict(sorted(kinds.items())),
        "slowest_ms": slowest * 1000,
        "most_bytes_more": most,
        "crashes": 0,
    }
    print({name: figures[name] for name in ("statuses", "slowest_ms", "most_bytes_more")})
    print(f"written to {record.write('mutated_images', figures, ('pillow', 'numpy')).relative_to(record.ROOT)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
