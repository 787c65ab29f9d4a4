"""Options selected by a grid search on validation items."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from adsh.experiments import grid_search, reproduce
from adsh.experiments.experiment_data import ExperimentData
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
        assert {trial.option("network") for trial in grid_search._grid(cell, config)} == {cell.option("network")}


def test_every_experiment_selects_by_the_same_trials(tmp_path):
    """DSH has one learning rate, in its table and in its training time, for its -D variant too."""
    config = replace(DIGITS, network="mlp", preset="fast", methods=("dsh", "dsh_d"), bits=(8, 12))
    requested = []
    for name in ("table1", "time"):
        grid_search.select_options(experiment(name).cells(config), config, ResultStore(tmp_path), requested.append)
    one, other = filter(None, requested)
    assert one == other
    assert [(trial.method, trial.bits) for trial in one] == [("dsh", 8)] * 3


def test_the_grid_of_rates_is_relative_to_the_presets():
    config = replace(CHEAP, network="mlp", preset="fast")
    trials = grid_search._grid(config.cell("dpsh_d", 12, 0), config)
    assert [trial.option("lr") for trial in trials] == [0.0006, 0.0018, 0.006]
    assert all(trial.query_split == "validation" for trial in trials)


@pytest.mark.parametrize(("best", "count"), [(0.0018, 3), (0.006, 4), (1.0, 5), (0.0005, 4), (0.0, 5)])
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
    assert [trial["options"]["lr"] for trial in summary] == [0.0006, 0.0002, 0.0000667]
