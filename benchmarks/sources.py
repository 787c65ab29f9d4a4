"""How long a large source takes to open, and in what memory.

    python benchmarks/sources.py            a folder of 60,000 images; CSV, TSV and JSON Lines of 1,000,000 lines
    python benchmarks/sources.py --small    a tenth of each

Each source is opened in a process of its own, so that its peak memory is its own: Python, NumPy and Pillow included.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import record
from PIL import Image

TAGS = [f"tag{i:02}" for i in range(80)]
OPEN = """
import sys, time, json
sys.path.insert(0, {benchmarks!r})
import record
from adsh.data import open_source
before, started = record.peak_bytes(), time.perf_counter()
dataset = open_source({path!r})
seconds = time.perf_counter() - started
print(json.dumps({{"items": len(dataset), "label_sets": dataset.labels.set_count, "seconds": round(seconds, 2),
                   "peak_MB": round(record.peak_bytes() / 1e6), "before_MB": round(before / 1e6)}}))
"""


def write_folder(root: Path, images: int) -> Path:
    """JPEG files in 100 classes; hard links of one, since a listing does not open them."""
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(root / "one.jpg")
    for at in range(images):
        folder = root / "folder" / f"class{at % 100:02}"
        if at < 100:
            folder.mkdir(parents=True)
        os.link(root / "one.jpg", folder / f"image_{at:06}.jpg")
    return root / "folder"


def write_manifest(path: Path, lines: int) -> Path:
    """A path of 40 letters, one to three of 80 labels, and a quoted caption, a line."""
    rng = np.random.default_rng(0)
    drawn, counts = rng.integers(0, len(TAGS), (lines, 3)).tolist(), rng.integers(1, 4, lines).tolist()
    between = "\t" if path.suffix == ".tsv" else ","
    with path.open("w") as file:
        if path.suffix != ".jsonl":
            file.write(between.join(["path", "caption", "labels"]) + "\n")
        for at in range(lines):
            name, tags = f"images/part{at % 1000:03}/photo_{at:012}.jpg", [TAGS[t] for t in drawn[at][: counts[at]]]
            if path.suffix == ".jsonl":
                file.write(json.dumps({"path": name, "caption": f'a "{tags[0]}", number {at}', "labels": tags}) + "\n")
            else:
                file.write(between.join([name, f'"a ""{tags[0]}"", number {at}"', "|".join(tags)]) + "\n")
    return path


def opened(path: Path) -> dict[str, float]:
    script = OPEN.format(benchmarks=str(Path(__file__).parent), path=str(path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    images, lines = (6_000, 100_000) if small else (60_000, 1_000_000)
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        figures["folder"] = opened(write_folder(root, images))
        for suffix in (".csv", ".tsv", ".jsonl"):
            figures[f"manifest {suffix}"] = opened(write_manifest(root / f"list{suffix}", lines))
    for name, values in figures.items():
        print(name, values)
    if not small:
        print(record.write("sources", figures, ("numpy", "pillow")))


if __name__ == "__main__":
    main()
