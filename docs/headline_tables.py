"""Tables that the README and the results page begin with, from results/*.json: what to know of the figures first."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from typing import Any

from results_tables import RESULTS, read, table

_COLUMNS = ("learned", "network", "new")
_KEYS = ("map_expected", "map_network", "map_new")
_PHOTOS = {
    "waste": "household waste, 6 kinds",
    "hands": "hands that show a digit, 10 kinds, 100 px",
    "clothing": "clothes, 10 kinds",
    "products": "groceries in a shop, 81 products",
}


def alternatives() -> str:
    """Return what codes, float vectors, product quantisation and a classifier find, take, and cost."""
    ways = read("benchmarks/alternatives.json")["figures"]["mean"]
    ours, classifier = ways["adsh"], ways["linear classifier"]
    trained = f"training again, {ours['seconds']:.0f} s; until then, re-ranking by vectors finds part of it"
    rows = [
        ["**`adsh`, 48 bits**", *_way(ours), trained],
        ["float vectors, faiss flat", *_way(ways["float vectors"]), "nothing"],
        ["the same, product-quantised (faiss)", *_way(ways["product quantisation, 64 bytes"]), "nothing"],
        ["the same, to 8 bytes", *_way(ways["product quantisation, 8 bytes"]), "nothing"],
        ["CLIP, product-quantised, as published", "–", "–", "270", "9.9 ms", "nothing"],
        [
            "a linear classifier", *_way(classifier)[:3], "none: it names",
            f"training again, {classifier['seconds']:.0f} s",
        ],
    ]  # fmt: skip
    return table(["", "MAP", "of the ten nearest", "bytes an item", "a search", "a new class costs"], rows)


def _way(figures: dict[str, Any]) -> list[str]:
    ms = figures.get("ms")
    taken = "" if ms is None else f"{ms:.2f} ms" if ms < 1 else f"{ms:.1f} ms"
    return [_short(figures["MAP"]), f"{100 * figures['P@10']:.0f} %", f"{figures['bytes']:,.0f}", taken]


def headlines() -> str:
    """Return MAP in the three columns, of each data set with one way of training."""
    rows = [
        ["CIFAR-10, EfficientNet-Lite2 fine-tuned, 55 s on an H200", "59,000", *_reference("cifar10")],
        ["as published: the authors' PyTorch program, ResNet-50", "59,000", ".9605", "", ""],
        ["as published: the paper, CNN-F", "58,000", ".9263", "", ""],
        ["CIFAR-10, features, two CPU cores", "59,000", *_on_cpu()],
        ["coco17, several labels, Lite2 fine-tuned; the first 5,000", "14,925", *_reference("coco17")],
        ["coco17, features; the whole ranking", "14,925", *_many("coco17", 48)],
        ["Caltech-101, 100 unequal classes, features", "7,442", *_many("caltech", 48)],
        ["CUB-200, 200 kinds of birds, features, 64 bits", "10,188", *_many("cub", 64)],
    ]
    for name, measured in _photo_folders().items():
        columns = [_short(measured["model"][column]["MAP"]) for column in _COLUMNS]
        rows.append([f"photographs: {_PHOTOS[name]}", f"{measured['images'] - measured['queries']:,}", *columns])
    return table(["48 bits, unless it says otherwise", "database", "learned", "by the network", "new items"], rows)


def _reference(name: str) -> list[str]:
    runs = read(f"{name}/summary.json")
    chosen = [run for run in runs if (run["preset"], run["network"]) == ("modern", "efficientnet_lite2")]
    return [_mean(run.get(key) for run in chosen if run["bits"] == 48) for key in _KEYS]


def _on_cpu() -> list[str]:
    rows = [row for row in read("cifar10/cpu.json")["rows"] if row["network"] == "mlp" and "map_expected" in row]
    return [_mean(row.get(key) for row in rows) for key in _KEYS]


def _many(name: str, bits: int) -> list[str]:
    lines = (RESULTS / "benchmarks/many_classes.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if (row["data"], row["bits"], row["method"]) == (name, bits, "adsh")]
    return [_mean(row[column]["map"] for row in rows) for column in _COLUMNS]


def _photo_folders() -> dict[str, Any]:
    folders = read("benchmarks/photo_folders.json")["figures"]["folders"]
    return {name: folders[name] for name in _PHOTOS if name in folders}


def photo_folders() -> str:
    """Return what was found in each folder of photographs, next to the features without codes."""
    rows = []
    for name, measured in _photo_folders().items():
        model, baselines = measured["model"], measured["baselines"]
        cosine, linear = baselines["float cosine"], baselines["linear classifier"]
        right, chance = (f"{100 * model['learned'][of]:.0f} %" for of in ("P@10", "chance"))
        columns = (_short(model[column]["MAP"]) for column in _COLUMNS)
        others = (_short(baseline["new"]["MAP"]) for baseline in (cosine, linear))
        rows.append([_PHOTOS[name], f"{measured['images']:,}", right, chance, *columns, *others])
    head = ["a folder of", "images", "of the ten nearest", "by chance", "MAP learned", "by the network", "new items"]
    return table([*head, "float cosine, new", "linear classifier, new"], rows)


def first_hour() -> str:
    """Return the seconds of each command on each folder of photographs."""
    folders = _photo_folders()
    steps = next(iter(folders.values()))["seconds"]
    rows = [
        [f"{_PHOTOS[name]}", f"{measured['images']:,}", *(_seconds(measured["seconds"][step]) for step in steps)]
        for name, measured in folders.items()
    ]
    return table(["a folder of", "images", *("over HTTP" if "HTTP" in step else f"`{step}`" for step in steps)], rows)


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s" if value >= 0.1 else "< 0.1 s"


def same_features() -> str:
    """Return MAP of ADSH and of the strongest others, all on the same features, by bits and column."""
    rows = []
    for data in ("cifar10", "coco17"):
        cells = read(f"{data}-features/table2.json")
        for method, name in (("adsh", "ADSH"), ("classifier_d", "classifier-D"), ("sdh_d", "SDH-D")):
            of_method = [cell for cell in cells if cell["method"] == method]
            by_bits = (
                " / ".join(_mean(cell.get(key) for cell in of_method if cell["bits"] == bits) for key in _KEYS)
                for bits in (12, 24, 32, 48)
            )
            rows.append([data, name, *by_bits])
    return table(["data", "method", *(f"{bits} bits" for bits in (12, 24, 32, 48))], rows)


def _mean(values: Iterable[float | None]) -> str:
    """Return the mean of the runs; a dash where none has the figure."""
    known = [value for value in values if value is not None]
    return _short(statistics.fmean(known)) if known else "–"


def _short(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


TABLES = {one.__name__: one for one in (alternatives, headlines, photo_folders, first_hour, same_features)}
