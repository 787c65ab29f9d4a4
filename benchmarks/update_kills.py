"""Kills `adsh update` and processes that make corrections at random moments, 200 times where no number is given.

    python benchmarks/update_kills.py [updates [corrections]]      (80 and 120)

After each killed update the model is the old one or the new one, whole; its index verifies, lacks no item, and every
code and label in it is of one of the two; `adsh update --resume` or the same command again completes it to the same
bytes. After each killed process of corrections, every correction that it reported is there, and none is half applied.
The first failure ends the run. Writes results/benchmarks/update_kills.json.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import record

sys.path.insert(0, str(record.ROOT))

from tests.cli.update_kills import Run


def main(updates: int, corrections: int) -> None:
    with tempfile.TemporaryDirectory(dir=".") as folder:
        run, rng, started = Run(Path(folder).resolve()), random.Random(0), time.perf_counter()
        found: Counter[str] = Counter()
        for number in range(updates):
            found[run.kill_update(rng)] += 1
            print(f"update {number + 1}: {dict(found)}", flush=True)
        reported = 0
        for number in range(corrections):
            reported += run.kill_corrections(rng)
            print(f"corrections {number + 1}: {reported} reported before the kill, none lost", flush=True)
        figures = {
            "killed_updates": updates,
            "old_model_left": found["old"],
            "new_model_left": found["new"],
            "killed_corrections": corrections,
            "corrections_reported": reported,
            "lost": 0,
            "seconds": round(time.perf_counter() - started, 1),
        }
    print(record.write("update_kills", figures))


if __name__ == "__main__":
    main(*(int(text) for text in [*sys.argv[1:3], *("80", "120")[len(sys.argv) - 1 :]]))
