"""Options selected by a grid search on validation items."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from adsh.experiments import grid_search, reproduce
from adsh.experiments.experiment_data import ExperimentData
from adsh.experiments.figures import networks
from adsh.experiments.result_store import ResultStore
from adsh.experiments.run import experiment

from .configs import CHEAP, DIGITS


def test_options_are_selected_on_validation_items(tmp_path):
    few = replace(CHEAP, methods=("sdh_d",), bits=(8,))
    outcome = reproduce(["table2"], few, tmp_path, tune=True)
    trials = json.loads((tmp_path / "choices.json").read_text())
    assert len(trials) == 6
    best = max(trials, key=lambda trial: trial["map_validation"])
    assert [trial for trial in trials if trial["chosen"]] == [best]
    assert outcome.ran == 7
    row = json.loads((tmp_path / "table2.json").read_text())[0]
    assert row["options"] == best["options"]
    cell = experiment("table2").cells(few)[0]
    validation, database, _ = ExperimentData(few).sides(replace(cell, query_split="validation"))
    queries = ExperimentData(few).split(0).queries
    assert not set(validation) & set(queries)
    assert not set(validation) & set(database)
    again = reproduce(["table1", "table2"], replace(CHEAP, bits=(8,)), tmp_path, tune=True, run=False)
    assert (again.ran, again.reused) == (0, 1)  # rendered from the trials there are; none is run for it


def test_options_are_selected_for_each_network():
    config = replace(DIGITS, methods=("dsh",))
    for cell in experiment("networks").cells(config):
        assert {trial.option("network") for trial in first_trials(cell, config)} == {cell.option("network")}


def first_trials(cell, config):
    """The trials of the first stage."""
    search = grid_search._Search(cell, config, ResultStore(Path("nowhere")))
    search.start(0)
    return search.trials


def test_every_experiment_selects_by_the_same_trials(tmp_path):
    """DSH has one learning rate, in its table and in its training time, for its -D variant too."""
    config = replace(DIGITS, network="mlp", preset="fast", methods=("dsh", "dsh_d"), bits=(8, 12))
    requested = []
    for name in ("table1", "time"):
        grid_search.select_options(experiment(name).cells(config), config, ResultStore(tmp_path), requested.append)
    one, other = filter(None, requested)
    assert one == other
    assert [(trial.method, trial.bits) for trial in one] == [("dsh", 8)] * 3


@pytest.mark.parametrize(
    ("method", "rates"),
    [("dpsh_batch_d", [0.0006, 0.0018, 0.006]), ("dpsh_d", [0.05, 0.15, 0.5]), ("adsh", [0.0018, 0.006, 0.018])],
)
def test_the_grid_of_rates_is_relative_to_the_rate_that_a_method_has_without(method, rates):
    config = replace(CHEAP, network="mlp", preset="fast")
    trials = first_trials(config.cell(method, 12, 0), config)
    assert [trial.option("lr") for trial in trials] == rates
    assert all(trial.query_split == "validation" for trial in trials)


def test_the_preset_of_the_paper_gets_its_rate_from_the_range_of_the_paper():
    config = replace(CHEAP, network="mlp", preset="paper", seeds=(0, 1, 2, 3))
    trials = first_trials(config.cell("adsh", 12, 0), config)
    assert sorted({trial.option("lr") for trial in trials}) == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2]
    assert sorted({trial.seed for trial in trials}) == [0, 1, 2]


def run_with(score, store):
    """Give every trial this MAP."""

    def run(cells):
        for cell in cells:
            if not store.has(cell):
                store.write(cell, {"map_expected": score(cell)})

    return run


def test_the_rate_of_the_paper_is_chosen_and_no_other_beyond_the_range(tmp_path):
    config, store = replace(CHEAP, network="mlp", preset="paper", methods=("adsh",)), ResultStore(tmp_path)
    planned = experiment("table1").cells(config)
    cells, summary = grid_search.select_options(planned, config, store, run_with(lambda cell: cell.option("lr"), store))
    assert {cell.option("lr") for cell in cells} == {1e-2}
    assert len(summary) == 5


def test_adsh_and_the_classifier_get_as_many_trials(tmp_path):
    """One option after the other, each with the best so far; None leaves an option to the preset."""
    config = replace(CHEAP, network="mlp", preset="fast", methods=("adsh", "classifier_d"), seeds=(0, 1, 2, 3))
    store, measured = ResultStore(tmp_path), []

    def score(cell):
        measured.append(cell)
        best = ("ema_decay", 0.95) if cell.method == "adsh" else ("smoothing", 0.1)
        best = dict([("lr", 0.006), best])
        return 0.5 + 0.1 * sum(cell.option(name) == value for name, value in best.items()) - 0.01 * cell.seed

    cells, summary = grid_search.select_options(
        experiment("table2").cells(config), config, store, run_with(score, store)
    )
    options = {cell.method: dict(cell.options) for cell in cells}
    assert options["adsh"] == {"lr": 0.006, "ema_decay": 0.95, "network": "mlp", "preset": "fast", "outer": 1}
    assert options["classifier_d"] == {"lr": 0.006, "smoothing": 0.1, "network": "mlp", "preset": "fast", "outer": 1}
    trials = {name: [row for row in summary if row["method"] == name] for name in options}
    assert len(trials["adsh"]) == len(trials["classifier_d"]) == 7
    assert {tuple(row["seeds"]) for row in summary} == {(0, 1, 2)}
    assert [sum(row["chosen"] for row in rows) for rows in trials.values()] == [1, 1]
    assert len(measured) == 3 * 14
    tuning = {cell.method: grid_search.describe_tuning(cell, summary) for cell in cells}
    assert tuning["adsh"] == (
        "lr 0.006 of 0.0018, 0.006, 0.018; ema_decay 0.95 of preset's, 0.95, 0.99; "
        "gamma as the preset of preset's, 20, 2000 on validation items, 8 bits, 3 seeds"
    )


def test_a_rate_that_fails_with_one_seed_is_not_chosen(tmp_path):
    config = replace(CHEAP, network="mlp", preset="fast", methods=("dsh",), bits=(8,), seeds=(0, 1, 2))
    store = ResultStore(tmp_path)

    def run(cells):
        for cell in cells:
            if cell.option("lr") != 0.006 or cell.seed != 1:
                store.write(cell, {"map_expected": 0.1 + cell.option("lr") * (1 if cell.option("lr") <= 0.006 else -1)})

    cells, _ = grid_search.select_options(experiment("table1").cells(config), config, store, run)
    assert {cell.option("lr") for cell in cells} == {0.0018}


@pytest.mark.parametrize(("best", "count"), [(0.0018, 3), (0.006, 4), (1.0, 7), (0.0005, 4), (0.0, 7)])
def test_rates_beyond_the_grid_are_tried_where_its_end_is_best(tmp_path, best, count):
    config, store = replace(CHEAP, network="mlp", preset="fast", methods=("dsh",), bits=(8,)), ResultStore(tmp_path)
    rates = []

    def run(cells):
        for cell in cells:
            if not store.has(cell):
                rates.append(cell.option("lr"))
                store.write(cell, {"map_expected": -abs(cell.option("lr") - best)})

    planned = experiment("table1").cells(config)
    cells, summary = grid_search.select_options(planned, config, store, run)
    assert len(rates) == len(summary) == count
    assert cells[0].option("lr") == min(rates, key=lambda rate: abs(rate - best))
    assert grid_search.select_options(planned, config, store, lambda _: None) == (cells, summary)


def test_a_smaller_rate_is_tried_where_all_but_the_smallest_failed(tmp_path):
    config, store = replace(CHEAP, network="mlp", preset="fast", methods=("dsh",), bits=(8,)), ResultStore(tmp_path)

    def run(cells):
        for cell in cells:
            if cell.option("lr") < 0.001:
                store.write(cell, {"map_expected": 0.5 - cell.option("lr")})

    _, summary = grid_search.select_options(experiment("table1").cells(config), config, store, run)
    assert [trial["options"]["lr"] for trial in summary] == [0.0006, 0.0002, 0.0000667, 0.0000222, 0.00000739]


def test_the_published_lfh_gets_its_variance_and_values_beyond_the_grid(tmp_path):
    config, store = replace(CHEAP, methods=("lfh", "lfh_d"), bits=(8,)), ResultStore(tmp_path)
    run = run_with(lambda cell: cell.option("variance"), store)
    cells, summary = grid_search.select_options(experiment("table1").cells(config), config, store, run)
    assert [row["options"]["variance"] for row in summary] == [30, 300, 3000, 3e4, 3e5, 3e6, 3e7]
    assert cells[0].option("variance") == 3e7


@pytest.mark.parametrize("method", ["dsh", "dhn"])
def test_rates_beyond_the_grid_are_tried_for_the_networks_of_the_papers_too(tmp_path, method):
    """Of the appendix: AlexNet and DSH's own network, each with a grid of its own."""
    config, store = replace(DIGITS, methods=(method,), bits=(8,)), ResultStore(tmp_path)
    own = networks.OWN_NETWORKS[method]

    def score(cell):
        return cell.option("lr") * (1 if cell.option("network") == own else -1)

    planned = networks.cells(config)
    cells, summary = grid_search.select_options(planned, config, store, run_with(score, store))
    rates = {network: [row["options"]["lr"] for row in summary if row["options"]["network"] == network]
             for network in {cell.option("network") for cell in cells}}  # fmt: skip
    assert {len(tried) for tried in rates.values()} == {7}
    for cell in cells:
        best = max if cell.option("network") == own else min
        assert cell.option("lr") == best(rates[cell.option("network")])


def test_the_tables_say_how_each_method_was_tuned(tmp_path):
    few = replace(CHEAP, methods=("sdh_d", "adsh"), bits=(8,), network="linear", preset="paper")
    reproduce(["table2"], few, tmp_path, tune=True)
    heading, _, *rows = [line for line in (tmp_path / "table2.md").read_text().splitlines() if line.startswith("|")][:4]
    assert heading.endswith("| how tuned |")
    tuned = {row.split("|")[1].strip(): row.split("|")[-2].strip() for row in rows}
    assert "hash_weight" in tuned["SDH-D"]
    assert tuned["SDH-D"].endswith("on validation items, 8 bits, seed 0")
    assert "of 1e-06, 1e-05, 0.0001, 0.001, 0.01 on validation items" in tuned["ADSH (linear)"]
