"""Options chosen by a grid search on validation items."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from adsh.experiments import grid_search, reproduce
from adsh.experiments.experiment_config import ExperimentData
from adsh.experiments.result_store import ResultStore
from adsh.experiments.run import experiment

from .configs import CHEAP, DIGITS


def test_options_are_chosen_on_validation_items(tmp_path):
    few = replace(CHEAP, methods=("sdh_d",), bits=(8,))
    outcome = reproduce(["table2"], few, tmp_path, choose=True)
    told = json.loads((tmp_path / "choices.json").read_text())
    assert len(told) == 6
    best = max(told, key=lambda one: one["map_validation"])
    assert [one for one in told if one["chosen"]] == [best]
    assert outcome.ran == 7
    row = json.loads((tmp_path / "table2.json").read_text())[0]
    assert row["options"] == best["options"]
    trial = experiment("table2").cells(few)[0]
    asking, database, _ = ExperimentData(few).sides(replace(trial, asking="validation"))
    queries = ExperimentData(few).split(0).queries
    assert not set(asking) & set(queries)
    assert not set(asking) & set(database)
    again = reproduce(["table1", "table2"], replace(CHEAP, bits=(8,)), tmp_path, choose=True, run=False)
    assert (again.ran, again.kept) == (0, 1)  # of what was chosen among; nothing else is run for it


def test_options_are_chosen_for_each_network_apart():
    config = replace(DIGITS, methods=("dsh",))
    for cell in experiment("networks").cells(config):
        assert {trial.option("network") for trial in grid_search._trials(cell, config)} == {cell.option("network")}


def test_every_experiment_chooses_by_the_same_trials(tmp_path):
    """The rate of DSH is one, whether its table or its time asks, for its -D variant too."""
    config = replace(DIGITS, network="mlp", preset="fast", methods=("dsh", "dsh_d"), bits=(8, 12))
    asked = []
    for name in ("table1", "time"):
        grid_search.chosen(experiment(name).cells(config), config, ResultStore(tmp_path), asked.append)
    one, other = filter(None, asked)
    assert one == other
    assert [(trial.method, trial.bits) for trial in one] == [("dsh", 8)] * 3


def test_rates_to_choose_among_are_shares_of_the_presets():
    config = replace(CHEAP, network="mlp", preset="fast")
    trials = grid_search._trials(config.cell("dpsh_d", 12, 0), config)
    assert [trial.option("lr") for trial in trials] == [0.0006, 0.0018, 0.006]
    assert all(trial.asking == "validation" for trial in trials)


@pytest.mark.parametrize(("best", "asked"), [(0.0018, 3), (0.006, 4), (1.0, 5), (0.0005, 4), (0.0, 5)])
def test_rates_beyond_the_grid_are_tried_where_its_end_is_best(tmp_path, best, asked):
    config, store = replace(CHEAP, network="mlp", preset="fast", methods=("dsh",), bits=(8,)), ResultStore(tmp_path)
    done = []

    def run(cells):
        for cell in cells:
            if not store.has(cell):
                done.append(cell.option("lr"))
                store.write(cell, {"map_expected": -abs(cell.option("lr") - best)})

    cells, told = grid_search.chosen(experiment("table1").cells(config), config, store, run)
    assert len(done) == len(told) == asked
    assert cells[0].option("lr") == min(done, key=lambda rate: abs(rate - best))
    assert grid_search.chosen(experiment("table1").cells(config), config, store, lambda _: None) == (cells, told)


def test_a_smaller_rate_is_tried_where_all_but_the_smallest_failed(tmp_path):
    config, store = replace(CHEAP, network="mlp", preset="fast", methods=("dsh",), bits=(8,)), ResultStore(tmp_path)

    def run(cells):
        for cell in cells:
            if cell.option("lr") < 0.001:
                store.write(cell, {"map_expected": 0.5 - cell.option("lr")})

    _, told = grid_search.chosen(experiment("table1").cells(config), config, store, run)
    assert [one["options"]["lr"] for one in told] == [0.0006, 0.0002, 0.0000667]
