"""Figures of the README and of docs/results.md are those of results/: means are computed again here.

`PAGE` is the results page as it is written, `SHOWN` as it is built, with its tables generated.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import Any

import numpy as np
import pytest

from adsh.experiments.cell import display_name

from .blocks import ROOT, load_hooks

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/results.md").read_text(encoding="utf-8")
SHOWN = load_hooks().with_generated(PAGE)


def read(name: str) -> Any:
    """A JSON file of results."""
    return json.loads((ROOT / "results" / name).read_text(encoding="utf-8"))


RUNS = read("cifar10/summary.json")


def values(figure: str, **selection: Any) -> list[float]:
    return [run[figure] for run in RUNS if all(run[name] == value for name, value in selection.items())]


def short(value: float) -> str:
    return f"{value:.4f}".removeprefix("0")


def shown(some: list[float]) -> str:
    """.9799 ± .0033, as the pages write it."""
    return f"{np.mean(some):.4f} ± {np.std(some, ddof=1):.4f}".replace("0.", ".")


@pytest.mark.parametrize(
    ("row", "figure"), [("codes as learned", "map_expected"), ("database encoded by the network", "map_network")]
)
def test_the_comparison_with_published_results(row, figure):
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| **adsh, {row}"))
    cells = [cell.strip().replace("*", "") for cell in line.split("|")[2:-1]]
    runs = [values(figure, preset="modern", network="efficientnet_lite2", bits=bits) for bits in (12, 24, 32, 48)]
    assert {len(run) for run in runs} == {3}
    assert cells == [shown(run) for run in runs]


def rows_of(page: str, name: str) -> list[str]:
    """The cells of the row that begins so."""
    (line,) = [line for line in page.splitlines() if line.startswith(f"| {name}")]
    return [cell.strip() for cell in line.split("|")[2:-1]]


@pytest.mark.parametrize("page", [README, SHOWN], ids=["README.md", "results.md"])
def test_the_headlines_are_the_means_of_the_runs(page):
    modern = {"preset": "modern", "network": "efficientnet_lite2", "bits": 48}
    means = [short(np.mean(values(figure, **modern))) for figure in ("map_expected", "map_network")]
    assert rows_of(page, "CIFAR-10, EfficientNet-Lite2 fine-tuned") == ["59,000", *means, "–"]
    assert not any("map_new" in run for run in RUNS)  # once it is measured, the dash goes, and so does what explains it
    for name, published in (("the authors' PyTorch program", "authors' PyTorch program"), ("the paper", "the paper")):
        (line,) = [line for line in PAGE.splitlines() if line.startswith(f"| {published}, ")]
        assert rows_of(page, f"as published: {name}")[1] == line.split("|")[-2].strip()
    rows = read("cifar10/cpu.json")["rows"]
    mlp = [row for row in rows if row["network"] == "mlp" and "map_expected" in row]
    columns = [short(np.mean([row[key] for row in mlp])) for key in ("map_expected", "map_network", "map_new")]
    assert rows_of(page, "CIFAR-10, features") == ["59,000", *columns]
    lines = (ROOT / "results/benchmarks/many_classes.jsonl").read_text(encoding="utf-8").splitlines()
    for data, bits, name in (("coco17", 48, "coco17, features"), ("caltech", 48, "Caltech"), ("cub", 64, "CUB")):
        runs = [
            row for row in map(json.loads, lines) if (row["data"], row["bits"], row["method"]) == (data, bits, "adsh")
        ]
        means = [short(np.mean([run[column]["map"] for run in runs])) for column in ("learned", "network", "new")]
        assert rows_of(page, name)[1:] == means
    folders = read("benchmarks/photo_folders.json")["figures"]
    assert len(folders["folders"]) == 4
    for measured in folders["folders"].values():
        assert measured["images"] >= 1200
        assert (
            f"| {' | '.join(short(measured['model'][name]['MAP']) for name in ('learned', 'network', 'new'))} |" in page
        )


@pytest.mark.parametrize("page", [README, SHOWN], ids=["README.md", "results.md"])
def test_the_alternatives_are_the_means_of_the_runs(page):
    runs = read("benchmarks/alternatives.json")["figures"]["runs"]
    assert len(runs) == 3
    named = {
        "**`adsh`": "adsh", "float vectors": "float vectors", "a linear": "linear classifier",
        "the same, product-quantised": "product quantisation, 64 bytes",
        "the same, to 8": "product quantisation, 8 bytes",
    }  # fmt: skip
    for name, way in named.items():
        found, right, size, *_ = rows_of(page, name)
        assert found == short(np.mean([run[way]["MAP"] for run in runs]))
        assert right == f"{100 * np.mean([run[way]['P@10'] for run in runs]):.0f} %"
        assert size == f"{runs[0][way]['bytes']:,}"


def test_what_is_said_of_folders_of_photographs():
    """Codes find about twice as much as float vectors; a linear classifier is ahead of codes on most, for new items."""
    folders = read("benchmarks/photo_folders.json")["figures"]["folders"].values()
    new = [(one["model"]["new"], one["baselines"]["float cosine"]["new"]) for one in folders]
    assert all(1.5 < codes["MAP"] / floats["MAP"] < 2.5 for codes, floats in new)
    linear = [one["baselines"]["linear classifier"]["new"]["MAP"] for one in folders]
    assert sum(rival > codes["MAP"] for rival, (codes, _) in zip(linear, new, strict=True)) > len(new) / 2


def test_the_tables_of_the_readme_are_those_of_the_results():
    tables = load_hooks("readme_tables")
    assert tables.filled(README) == README, "python docs/readme_tables.py writes them again"


def test_rounded_figures_of_the_readme():
    text = " ".join(README.split())
    scale = read("benchmarks/scale.json")["figures"]["update"]
    ms = {row["n"]: row["update_ms"] for row in scale if row["setting"] == "10 classes"}
    assert f"takes {ms[59_000]:.1f} ms for 59,000 points and {ms[10**9]:.1f} ms for 1,000,000,000" in text
    waste = read("benchmarks/photo_folders.json")["figures"]["folders"]["waste"]["model"]["learned"]
    said = f"{100 * waste['P@10']:.0f} % are of the same kind; by chance it would be {100 * waste['chance']:.0f} %"
    assert said in text


def test_fast_is_as_fast_and_good_as_the_page_says():
    text = " ".join(PAGE.split())
    fast = {"preset": "fast", "network": "efficientnet_lite0", "bits": 24}
    seconds = values("seconds", **fast)
    assert f"| {np.mean(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}) |" in text
    cold = read("cifar10/cold.json")
    assert f"| {cold['training_seconds']} s | {cold['cold_start_seconds']} s |" in text
    assert f"MAP {shown(values('map_expected', **fast))} over five splits" in text
    assert f"{np.mean(values('map_network', **fast)):.4f}"[1:] + " with the database encoded by the network" in text


@pytest.mark.parametrize("table", ["table1", "table2"])
def test_the_papers_tables_are_those_of_the_results(table):
    rows = read(f"cifar10/{table}.json")
    section = PAGE.split("## The paper's tables")[1].split("\n## ")[0].replace("**", "")
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = []
        for bits in (12, 24, 32, 48):
            of_each = [row for row in rows if (row["method"], row["bits"]) == (method, bits)]
            paper = of_each[0]["paper"]
            found = float(np.mean([row["map_expected"] for row in of_each]))
            cells.append(short(found) + (f" ({short(paper)})" if paper else ""))
        assert f"| {display_name(method)} | {' | '.join(cells)} |" in section


def test_the_comparison_on_the_same_features_is_as_the_page_says():
    for data in ("cifar10", "coco17"):
        rows = read(f"{data}-features/table2.json")
        for method, name in (("adsh", "ADSH"), ("sdh_d", "SDH-D"), ("classifier_d", "classifier-D")):
            cells = []
            for bits in (12, 24, 32, 48):
                of_each = [row for row in rows if (row["method"], row["bits"]) == (method, bits)]
                known = [
                    [row[key] for row in of_each if row.get(key)] for key in ("map_expected", "map_network", "map_new")
                ]
                cells.append(" / ".join(short(np.mean(some)) if some else "–" for some in known))
            assert f"| {data} | {name} | {' | '.join(cells)} |" in SHOWN
    seconds = {(row["method"], row["points"]): row["seconds"]
               for row in read("cifar10-features/time.json")
               if row["points"] and row["options"].get("outer") == 5}  # fmt: skip
    assert seconds["adsh", 58_000] < 1.1 * seconds["adsh", 5_000] < 0.3 * seconds["dsh", 58_000]


def test_training_takes_as_long_as_the_page_says():
    rows = read("cifar10/time.json")
    few = [row for row in rows if row["points"] and row["options"].get("outer") == 5]
    seconds = {(row["method"], row["points"]): row["seconds"] for row in few}
    ours = {f"{seconds['adsh', points]:.1f}" for points in (10_000, 58_000)}
    theirs = sorted(f"{seconds[name, 58_000]:.1f}" for name in ("dsh", "dhn"))
    said = f"take {ours.pop()} s for 10,000 points and for 58,000, where DSH and DHN take"
    assert not ours
    assert f"{said} {theirs[0]} to {theirs[-1]} s" in " ".join(PAGE.split())


@pytest.mark.parametrize(
    ("row", "figure"), [("codes as learned", "map_expected"), ("database encoded by the network", "map_network")]
)
def test_alexnet_is_as_good_as_the_page_says(row, figure):
    selection = {"network": "alexnet", "method": "adsh", "preset": "modern"}
    runs = [values(figure, bits=bits, **selection) for bits in (12, 24, 32, 48)]
    assert [len(some) for some in runs] == [3, 1, 1, 3]
    assert f"| {row} | {' | '.join(shown(some) if len(some) > 1 else short(some[0]) for some in runs)} |" in PAGE


def test_two_cores_are_as_good_as_the_page_says():
    rows = read("cifar10/cpu.json")["rows"]
    text = SHOWN.replace("\u00a0", " ")
    for network in ("linear", "mlp"):
        whole = [row for row in rows if row["network"] == network and "map_expected" in row]
        columns = [shown([row[key] for row in whole]) for key in ("map_expected", "map_network", "map_new")]
        assert f"| `{network}` | {' | '.join(columns)} | " in text
    partly = [row for row in rows if "map_labelled" in row]
    assert f"| labelled | {shown([row['map_labelled'] for row in partly])} |" in text
    assert f"| without a label | {shown([row['map_unlabelled'] for row in partly])} |" in text


@pytest.mark.parametrize("preset", ["paper", "authors-pytorch", "authors-matlab", "classifier"])
def test_the_presets_and_the_classifier_are_as_the_page_says(preset):
    selection = {"method": "classifier"} if preset == "classifier" else {"preset": preset}
    networks = ("alexnet", "efficientnet_lite0")
    columns = ("map_expected",) if preset == "classifier" else ("map_expected", "map_network")
    cells = []
    for name, bits in itertools.product(networks, (12, 48)):
        found = [values(column, network=name, bits=bits, **selection) for column in columns]
        assert {len(some) for some in found} == {1}
        cells.append(" / ".join(short(some[0]) for some in found))
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| `{preset}`"))
    assert line.endswith(f"| {' | '.join(cells)} |")


@pytest.mark.parametrize(
    ("row", "figure"), [("codes as learned", "map_expected"), ("database encoded by the network", "map_network")]
)
def test_coco17_is_as_the_page_says(row, figure):
    runs = read("coco17/summary.json")
    both = [shown([run[figure] for run in runs if run["bits"] == bits]) for bits in (12, 48)]
    assert f"| {row} | {both[0]} | {both[1]} |" in PAGE


def test_the_speed_of_the_metrics_is_as_the_page_says():
    figures = read("benchmarks/metrics.json")["figures"]
    small = [row for row in figures if row["case"] == "small"]
    assert len(small) == 3
    for row in small:
        name = f"{row['distinct_codes']:,}" if row["distinct_codes"] else "all"
        seconds = f"{1000 * row['seconds']:.1f} ms | {row['published_seconds']:.2f} s"
        ratios = f"{row['times_faster_than_published']:.0f} | {row['times_faster_than_published_float32']:.0f}"
        assert f"| {name} distinct | {seconds} | {ratios} |" in PAGE


@pytest.mark.parametrize("page", [README, PAGE], ids=["README.md", "results.md"])
def test_every_table_of_figures_names_its_file(page):
    for section in re.split(r"^## ", page, flags=re.MULTILINE):
        if re.search(r"^\|.*\d\.?\d* ?(?:ms|s)? \|", section, re.MULTILINE) and "<!-- figures: " not in section:
            assert re.search(r"\]\((?:\.\./)?results/[\w/]+\.json\)", section), section.splitlines()[0]


def test_what_is_said_of_a_few_thousand_items_and_of_classes_that_were_not_trained():
    """docs/explanation/limits.md: codes find more than the float vectors, and vectors find more of an unseen class."""
    sets = read("benchmarks/small_folders.json")["figures"]["sets"]
    assert len(sets) == 3
    for measured in sets.values():
        for run in measured["MAP"]:
            assert min(run["codes as learned"], run["codes by the network"]) > run["float cosine"]
        unseen = measured["P@10 of a class that was not trained"]
        by_codes, by_vectors = (
            np.mean([run[way] for run in unseen]) for way in ("by codes alone", "re-ranked by vectors")
        )
        assert by_vectors > by_codes


def test_what_is_said_of_guesses():
    """docs/howto/serve.md: how far shares are from how often guesses are right, next to those of the ten nearest."""
    sets = read("benchmarks/guess.json")["figures"]["sets"]
    assert len({name.partition(",")[0] for name in sets}) == 3
    ways = [(ways[f"{codes}, all items"], ways[f"{codes}, ten nearest"]) for ways in sets.values()
            for codes in ("as learned", "by the network")]  # fmt: skip
    said = (ROOT / "docs/howto/serve.md").read_text(encoding="utf-8")
    gaps = [all_items["gap"] for all_items, _ in ways]
    assert f"differ by {max(gaps):.2f} on average at most".replace("0.", ".") in said
    sure = min(all_items["bins"]["0.9"][1] for all_items, _ in ways)
    assert f"share of .9 or more, {math.floor(100 * sure)} % or more were right" in said
    unsure = [bin_ for all_items, _ in ways for lower, bin_ in all_items["bins"].items() if lower != "0.9"]
    right = sum(number * share for number, share in unsure) / sum(number for number, _ in unsure)
    assert 0.45 < right < 0.6  # "about half"
    assert all(nearest["share"] > 0.98 for _, nearest in ways)  # "1 for nearly every image"
    assert sum(gaps) < sum(nearest["gap"] for _, nearest in ways)
