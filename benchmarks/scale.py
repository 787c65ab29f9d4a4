"""Does n cost anything? One code update at 59,000, 10^7 and 10^9 points, and a whole fit at 10^8.

    python benchmarks/scale.py            all of it: about 3 minutes, under 3 GiB a process
    python benchmarks/scale.py --small    the same at 59,000, 10^6 and 10^7, fit at 10^6

Updates at the three sizes take turns in one process, so that they meet the same machine. Peak memory is that of
a process that holds the largest size alone, labels included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # a second thread that waits for a busy core costs more than it gives

import numpy as np
import record

import adsh
from adsh.learn import CodeTable

BITS, SAMPLES, UPDATES, TAGS = 48, 2000, 30, 24
SETTINGS = {"10 classes": (10, np.uint8), "1,000 label sets": (1000, np.uint16)}


class Case:
    """A table over n random points, and the sampled outputs it is updated with."""

    def __init__(self, n: int, setting: str) -> None:
        sets, kind = SETTINGS[setting]
        rng = np.random.default_rng(0)
        self.ids = np.empty(n, dtype=kind)
        for start in range(0, n, 1 << 24):
            part = self.ids[start : start + (1 << 24)]
            part[:] = rng.integers(0, sets, len(part), dtype=kind)
        hot = rng.random((sets, TAGS)) < 0.1
        hot[np.arange(sets), rng.integers(0, TAGS, sets)] = True
        self.centres = rng.choice([-1.0, 1.0], size=(sets, BITS))
        started = time.perf_counter()
        self.table = CodeTable(self.ids if sets == 10 else adsh.LabelSets(self.ids, hot), BITS)
        self.construction = time.perf_counter() - started
        self.rng, self.n, self.updates, self.products = np.random.default_rng(1), n, [], []

    def update(self) -> None:
        omega = self.rng.choice(self.n, SAMPLES, replace=False)
        outputs = np.tanh(1.5 * self.centres[self.ids[omega]] + self.rng.normal(size=(SAMPLES, BITS)))
        started = time.perf_counter()
        self.table.gram()
        self.table.similarity_sums(omega)
        between = time.perf_counter()
        self.table.update(omega, outputs, 200.0)
        self.products.append(between - started)
        self.updates.append(time.perf_counter() - between)


def peak_gib() -> float:
    return record.peak_bytes() / 2**30


def in_child(*arguments: str) -> dict:
    command = [sys.executable, __file__, *arguments]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def measure_updates(setting: str, sizes: list[int]) -> list[dict]:
    cases = [Case(n, setting) for n in sizes]
    for _ in range(UPDATES + 3):  # the first three warm up
        for case in cases:
            case.update()
    base = np.median(cases[0].updates[3:])
    rows = []
    for case in cases:
        update, product = (1e3 * np.median(times[3:]) for times in (case.updates, case.products))
        rows.append(
            {
                "setting": setting,
                "n": case.n,
                "construction_s": round(case.construction, 3),
                "update_ms": round(update, 3),
                "products_ms": round(product, 3),
                "update_ratio": round(update / (1e3 * base), 3),
                "rows": len(case.table.rows),
            }
        )
    return rows


class GeneratedFeatures:
    """n feature vectors that are computed when they are read: a class centre and noise, both from the index."""

    def __init__(self, n: int, classes: int = 10, dimensions: int = 64) -> None:
        rng = np.random.default_rng(0)
        self.n, self.classes = n, classes
        self.centres = rng.normal(size=(classes, dimensions)).astype(np.float32)
        self.noise = rng.normal(size=(1 << 16, dimensions)).astype(np.float32)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> np.ndarray:
        return self.__getitems__([i])[0]

    def __getitems__(self, indices: list[int]) -> np.ndarray:
        i = np.asarray(indices, dtype=np.uint64)
        mixed = (i * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(48)
        return self.centres[i % np.uint64(self.classes)] + self.noise[mixed]


def measure_fit(n: int) -> dict:
    source = GeneratedFeatures(n)
    labels = np.empty(n, dtype=np.uint8)
    for start in range(0, n, 1 << 24):
        part = labels[start : start + (1 << 24)]
        part[:] = np.arange(start, start + len(part)) % source.classes
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        model = adsh.ADSH(BITS, network="linear", device="cpu").fit(source, labels)
        fitted = time.perf_counter()
        model.save(f"{folder}/model")
        saved = time.perf_counter()
        loaded = adsh.load(f"{folder}/model")
        done = time.perf_counter()
        size = sum(os.path.getsize(f"{folder}/model/{name}") for name in os.listdir(f"{folder}/model"))
        some = np.random.default_rng(0).choice(n, 100_000, replace=False)
        learned, again = model.code_table_, loaded.code_table_
        same = np.array_equal(learned.packed, again.packed)
        same = same and np.array_equal(learned.row_numbers, again.row_numbers)
        agree = np.array_equal(loaded.encode(source.__getitems__(some)), model.encode(source.__getitems__(some)))
        own_class = [loaded.code_for([k])[0] for k in range(source.classes)]
        codes = loaded.code_table_.packed[loaded.code_table_.row_numbers[some]]
        at_class_code = float((codes == np.array(own_class)[labels[some]]).all(axis=1).mean())
    return {
        "n": n,
        "outer_iterations": len(model.history_),
        "fit_s": round(fitted - started, 2),
        "median_iteration_ms": round(1e3 * float(np.median([r["seconds"] for r in model.history_])), 1),
        "save_s": round(saved - fitted, 2),
        "load_s": round(done - saved, 2),
        "saved_mb": round(size / 1e6, 1),
        "rows": len(learned.rows),
        "codes_equal_after_loading": bool(same and agree),
        "points_at_their_class_code": round(at_class_code, 4),
        "peak_gib": round(peak_gib(), 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--memory", nargs=2, metavar=("N", "SETTING"), help=argparse.SUPPRESS)
    parser.add_argument("--fit", type=int, metavar="N", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.memory:
        case = Case(int(given.memory[0]), given.memory[1])
        for _ in range(UPDATES):
            case.update()
        print(json.dumps({"peak_gib": round(peak_gib(), 2), "construction_s": round(case.construction, 2)}))
        return
    if given.fit:
        print(json.dumps(measure_fit(given.fit)))
        return

    sizes = [59_000, 10**6, 10**7] if given.small else [59_000, 10**7, 10**9]
    figures: dict = {"bits": BITS, "samples": SAMPLES, "updates": UPDATES, "update": [], "memory": [], "fit": None}
    print(f"One code update, {SAMPLES:,} samples, {BITS} bits, medians of {UPDATES}")
    print(f"{'setting':>17} {'n':>14} {'made in':>9} {'G and P':>10} {'update':>10} {'ratio':>6} {'rows':>6}")
    for setting in SETTINGS:
        for row in measure_updates(setting, sizes):
            figures["update"].append(row)
            print(
                f"{setting:>17} {row['n']:>14,} {row['construction_s']:>7.2f} s {row['products_ms']:>7.2f} ms "
                f"{row['update_ms']:>7.2f} ms {row['update_ratio']:>6.2f} {row['rows']:>6}"
            )
        alone = in_child("--memory", str(sizes[-1]), setting)
        figures["memory"].append({"setting": setting, "n": sizes[-1], **alone})
        print(f"{setting:>17} {sizes[-1]:>14,} alone: peak {alone['peak_gib']} GiB, labels included")
    figures["fit"] = in_child("--fit", str(10**6 if given.small else 10**8))
    print("A whole fit, `linear` on features made on the fly, saved and loaded again:")
    for name, value in figures["fit"].items():
        print(f"{name:>28}  {value:,}" if isinstance(value, int) else f"{name:>28}  {value}")
    if not given.small:
        print(f"written to {record.write('scale', figures).relative_to(record.ROOT)}")


if __name__ == "__main__":
    main()
