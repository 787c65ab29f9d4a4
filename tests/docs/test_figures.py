"""Figures of the README and of docs/results.md are those of results/: means are computed again here."""

from __future__ import annotations

import itertools
import json
import math
import re
from typing import Any

import numpy as np
import pytest

from adsh.experiments.cell import display_name

from .blocks import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs/results.md").read_text(encoding="utf-8")
RUNS = json.loads((ROOT / "results/cifar10/summary.json").read_text(encoding="utf-8"))


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
@pytest.mark.parametrize("page", [README, PAGE], ids=["README.md", "results.md"])
def test_the_comparison_with_published_results(page, row, figure):
    line = next(line for line in page.splitlines() if line.startswith(f"| **adsh, {row}"))
    cells = [cell.strip().replace("*", "") for cell in line.split("|")[2:-1]]
    runs = [values(figure, preset="modern", network="efficientnet_lite2", bits=bits) for bits in (12, 24, 32, 48)]
    assert {len(run) for run in runs} == {3}
    assert cells == [shown(run) for run in runs]


def test_published_rows_of_the_readme_are_those_of_the_page():
    for name in ("| authors' PyTorch program", "| the paper, CNN-F"):
        (row,) = [line for line in README.splitlines() if line.startswith(name)]
        assert row in PAGE.splitlines()


def test_rounded_figures_of_the_readme():
    text = " ".join(README.split())
    cold = json.loads((ROOT / "results/cifar10/cold.json").read_text(encoding="utf-8"))
    fast = np.mean(values("map_expected", preset="fast", network="efficientnet_lite0", bits=24))
    assert f"trains in {cold['training_seconds']:.0f} s and reaches {fast:.3f} at 24 bits".replace(" 0.", " .") in text
    rows = json.loads((ROOT / "results/cifar10/cpu.json").read_text(encoding="utf-8"))["rows"]
    mlp = [row for row in rows if row["network"] == "mlp" and "map_expected" in row]
    score = f"{np.mean([row['map_expected'] for row in mlp]):.3f}".removeprefix("0")
    seconds = [row["seconds"] for row in mlp]
    assert f"network reaches {score} in {min(seconds):.0f} to {max(seconds):.0f} s" in text
    scale = json.loads((ROOT / "results/benchmarks/scale.json").read_text(encoding="utf-8"))["figures"]["update"]
    ms = {row["n"]: row["update_ms"] for row in scale if row["setting"] == "10 classes"}
    assert f"takes {ms[59_000]:.1f} ms for 59,000 points and {ms[10**9]:.1f} ms for 1,000,000,000" in text


def test_fast_is_as_fast_and_good_as_the_page_says():
    text = " ".join(PAGE.split())
    fast = {"preset": "fast", "network": "efficientnet_lite0", "bits": 24}
    seconds = values("seconds", **fast)
    assert f"| {np.mean(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f}) |" in text
    cold = json.loads((ROOT / "results/cifar10/cold.json").read_text(encoding="utf-8"))
    assert f"| {cold['training_seconds']} s | {cold['cold_start_seconds']} s |" in text
    assert f"MAP {shown(values('map_expected', **fast))} over five splits" in text
    assert f"{np.mean(values('map_network', **fast)):.4f}"[1:] + " with the database encoded by the network" in text


@pytest.mark.parametrize("table", ["table1", "table2"])
def test_the_papers_tables_are_those_of_the_results(table):
    rows = json.loads((ROOT / f"results/cifar10/{table}.json").read_text(encoding="utf-8"))
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
    text = " ".join(PAGE.split())
    rows = json.loads((ROOT / "results/cifar10-features/table2.json").read_text(encoding="utf-8"))
    said = {"adsh": "{} to {}, against", "sdh_d": "{} to {} of SDH-D", "classifier_d": "{} to {} of the classifier"}
    for method, sentence in said.items():
        means = [
            np.mean([row["map_expected"] for row in rows if (row["method"], row["bits"]) == (method, bits)])
            for bits in (12, 24, 32, 48)
        ]
        assert sentence.format(short(min(means)), short(max(means))) in text
    seconds = {(row["method"], row["points"]): row["seconds"]
               for row in json.loads((ROOT / "results/cifar10-features/time.json").read_text(encoding="utf-8"))
               if row["points"] and row["options"].get("outer") == 5}  # fmt: skip
    assert seconds["adsh", 58_000] < 1.1 * seconds["adsh", 5_000] < 0.3 * seconds["dsh", 58_000]


def test_training_takes_as_long_as_the_page_says():
    rows = json.loads((ROOT / "results/cifar10/time.json").read_text(encoding="utf-8"))
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
    text, rows = " ".join(PAGE.split()), json.loads((ROOT / "results/cifar10/cpu.json").read_text("utf-8"))["rows"]
    for network in ("linear", "mlp"):
        whole = [row for row in rows if row["network"] == network and "map_expected" in row]
        assert f"`{network}` {shown([row['map_expected'] for row in whole])} in " in text
    partly = [row for row in rows if "map_labelled" in row]
    assert f"with MAP {shown([row['map_labelled'] for row in partly])} and the others" in text
    assert f"with {shown([row['map_unlabelled'] for row in partly])}." in text


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
    runs = json.loads((ROOT / "results/coco17/summary.json").read_text(encoding="utf-8"))
    both = [shown([run[figure] for run in runs if run["bits"] == bits]) for bits in (12, 48)]
    assert f"| {row} | {both[0]} | {both[1]} |" in PAGE


def test_the_speed_of_the_metrics_is_as_the_page_says():
    figures = json.loads((ROOT / "results/benchmarks/metrics.json").read_text(encoding="utf-8"))["figures"]
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
        if re.search(r"^\|.*\d\.?\d* ?(?:ms|s)? \|", section, re.MULTILINE):
            assert re.search(r"\]\((?:\.\./)?results/[\w/]+\.json\)", section), section.splitlines()[0]


def test_what_is_said_of_a_few_thousand_items_and_of_classes_that_were_not_trained():
    """docs/explanation/limits.md: codes find more than the float vectors, and vectors find more of an unseen class."""
    sets = json.loads((ROOT / "results/benchmarks/small_folders.json").read_text(encoding="utf-8"))["figures"]["sets"]
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
    """docs/howto/serve.md: how far shares are from how often guesses are right, next to those of the ten nearest items."""
    sets = json.loads((ROOT / "results/benchmarks/guess.json").read_text(encoding="utf-8"))["figures"]["sets"]
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
