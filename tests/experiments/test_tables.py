"""Tables and the sentences below them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adsh.experiments import comparison
from adsh.experiments.cell import Cell
from adsh.experiments.experiment_config import ExperimentConfig
from adsh.experiments.figures import hyperparameters, learned_vs_hashed, training_time
from adsh.experiments.map_table import map_table
from adsh.experiments.paper import MAP, paper_map
from adsh.experiments.tables import Best, Table, html, latex, markdown


def record(method, bits, seed, figure):
    cell = Cell(method, bits, seed)
    return cell, {"method": method, "bits": bits, "seed": seed, "map_expected": figure,
                  "paper": paper_map("cifar10", method, bits)}  # fmt: skip


def test_a_table_has_the_papers_value_and_the_difference():
    table = map_table("t", "MAP", [record("adsh", 12, 0, 0.9), record("itq", 12, 0, 0.2)], [12])
    assert list(table.headings) == ["method", "12 bits", "paper", "diff."]
    assert table.rows == [["ADSH", ".9000", ".8466", "+.0534"], ["ITQ", ".2000", ".2611", "−.0611"]]
    assert [isinstance(row[1], Best) for row in table.rows] == [True, False]


def test_a_table_says_where_adsh_is_first_and_where_not():
    figures = [record("adsh", 12, 0, 0.9), record("sdh_d", 12, 0, 0.91), record("adsh", 24, 0, 0.95)]
    behind = map_table("t", "MAP", figures, [12])
    assert "ADSH is behind SDH-D at 12 bits (−.0100)." in behind.notes
    assert behind.rows[0][1] == ".9000, behind SDH-D"
    both = map_table("t", "MAP", [*figures, record("sdh_d", 24, 0, 0.91)], [12, 24])
    assert "ADSH is first at 24 bits; behind SDH-D at 12 bits (−.0100)." in both.notes
    ahead = map_table("t", "MAP", [*figures[2:], record("sdh_d", 24, 0, 0.91)], [24])
    assert "ADSH is first in every column." in ahead.notes
    part = map_table("t", "MAP", [*figures[2:], record("sdh_d", 24, 0, 0.91), record("sdh_d", 12, 0, 0.9)], [12, 24])
    assert "ADSH is first in every column; not compared yet at 12 bits." in part.notes
    alone = map_table("t", "MAP", [record("sdh_d", 12, 0, 0.9), record("adsh", 24, 0, 0.9)], [12, 24])
    assert "ADSH is not compared yet." in alone.notes


@pytest.mark.parametrize("lead", [0.004, -0.004])
def test_a_lead_smaller_than_the_spread_of_seeds_is_called_level(lead):
    figures = [record("adsh", 12, seed, 0.9 + 0.01 * seed + lead) for seed in (0, 1, 2)]
    figures += [record("sdh_d", 12, seed, 0.9 + 0.01 * seed) for seed in (0, 1, 2)]
    table = map_table("t", "MAP", figures, [12])
    sign = "+" if lead > 0 else "−"
    assert f"ADSH is level with SDH-D at 12 bits ({sign}.0040). {comparison.LEVEL}" in table.notes
    assert table.rows[0][1].endswith("± .0100, level with SDH-D")
    far = [record("sdh_d", 12, seed, 0.8 + 0.01 * seed) for seed in (0, 1, 2)]
    assert "ADSH is first in every column." in map_table("t", "MAP", [*figures[:3], *far], [12]).notes


def test_differences_are_paired_by_seed_with_an_interval():
    """Student's t with two degrees of freedom: .01 +- 4.303 x .002 / sqrt(3). Each seed needs both methods."""
    figures = [record("adsh", 12, seed, 0.9 + 0.01 * seed) for seed in (0, 1, 2, 3)]
    figures += [record("sdh_d", 12, s, 0.9 + 0.01 * s - d) for s, d in enumerate((0.008, 0.01, 0.012))]
    figures += [record("itq", 12, 0, 0.95), record("lin_v", 24, 0, 0.95)]
    table = comparison.difference_table("d", figures, [12])
    assert table.rows == [["SDH-D", "+.0100 [+.0050, +.0150]"], ["ITQ", "−.0500"], ["Lin:V", "–"]]
    assert comparison.difference_table("d", figures[4:], [12]) is None
    assert comparison.difference_table("d", figures[:4], [12]) is None


def test_a_table_says_how_each_method_was_tuned():
    results = [record("adsh", 12, 0, 0.9), record("itq", 12, 0, 0.2)]
    results[0][1]["tuned"] = "lr 0.1 of 0.01, 0.1"
    table = map_table("t", "MAP", results, [12])
    assert table.headings[-1] == "how tuned"
    assert [row[-1] for row in table.rows] == ["lr 0.1 of 0.01, 0.1", "–"]


def test_a_table_says_which_methods_have_fewer_runs():
    figures = [record("adsh", 12, seed, 0.9) for seed in (0, 1, 2)] + [record("adsh", 24, 0, 0.9)]
    figures += [record("itq", 12, seed, 0.2) for seed in (0, 1, 2)]
    notes = map_table("t", "MAP", figures, [12, 24]).notes
    assert notes[0] == "Means over 3 seeds (0, 1, 2), ± the standard deviation; 1 for ADSH."


def test_a_method_with_two_networks_has_its_runs_counted_by_network():
    def of(network, seed):
        cell, values = record("dsh", 12, seed, 0.5)
        return replace(cell, options=(("network", network),)), values

    table = map_table("t", "MAP", [of("alexnet", 0), *(of("mlp", seed) for seed in (0, 1))], [12])
    assert [row[0] for row in table.rows] == ["DSH (alexnet)", "DSH (mlp)"]
    assert table.notes[0] == "Means over 2 seeds (0, 1), ± the standard deviation; 1 for DSH (alexnet)."


@pytest.mark.parametrize(
    ("by_size", "sentence"),
    [
        ({"ADSH": {5: 1.0, 9: 1.0}, "DSH": {5: 2.0, 9: 3.0}}, "ADSH is ahead at every size."),
        ({"ADSH": {5: 1.0, 9: 1.0}, "DSH": {5: 1.0, 9: 3.0}}, "ADSH is not ahead at 5 points."),
        ({"ADSH": {9: 1.0}, "DSH": {5: 2.0, 9: 3.0}}, "ADSH is ahead at every size compared so far."),
        ({"ADSH": {5: 1.0, 9: 1.0}}, "ADSH is not compared yet."),
    ],
)
def test_the_time_says_where_adsh_is_ahead(by_size, sentence):
    assert training_time.describe_rank(by_size, [5, 9]) == sentence


def test_a_length_that_is_not_done_has_a_dash():
    table = map_table("t", "MAP", [record("adsh", 12, 0, 0.9)], [12, 24])
    assert table.rows == [["ADSH", ".9000", ".8466", "+.0534", "–", "–", "–"]]


def test_new_items_have_a_column_where_a_cell_has_them_and_a_dash_elsewhere():
    with_new, without = record("adsh", 12, 0, 0.9), record("itq", 12, 0, 0.2)
    with_new[1]["map_new"] = 0.7
    table = map_table("t", "MAP", [with_new, without], [12])
    assert list(table.headings) == ["method", "12 bits", "new", "paper", "diff."]
    assert [row[2] for row in table.rows] == [".7000", "–"]
    assert any(note.startswith("New: items that no training saw") for note in table.notes)


@pytest.mark.parametrize("has_new", [True, False])
def test_columns_and_hyper_parameters_show_new_items_where_there_are_any(has_new, no_figures_drawn):
    config = ExperimentConfig("digits", bits=(24,))
    more = {"map_new": 0.7} if has_new else {}
    cell, values = record("adsh", 24, 0, 0.9)
    results = [(replace(cell, options=(("gamma", 1.0),)), {**values, "map_network": 0.8, **more})]
    columns = learned_vs_hashed.render(config, results).tables[0]
    assert columns.rows == [["ADSH", ".9000", ".8000", *[".7000"] * has_new]]
    assert columns.headings[-1] == ("new" if has_new else "hashed")
    hyper = hyperparameters.render(config, results).tables[0]
    assert [row[0] for row in hyper.rows] == ["24 bits", *["24 bits, new items"] * has_new]
    trained = (cell, {**values, "seconds": 2.0, **more})
    rows = training_time.render(config, [trained]).tables[1].rows
    assert [row[0] for row in rows] == ["ADSH", *["ADSH, new items"] * has_new]


def test_the_time_to_a_map_is_that_of_the_shortest_training_that_reaches_it(no_figures_drawn):
    """Trainings of an eighth, a quarter, half and whole length; five iterations come last."""
    config = ExperimentConfig("digits", bits=(8,), network="linear", preset="paper", methods=("adsh", "dpsh"))
    scores = {"adsh": (0.55, 0.72, 0.69, 0.81), "dpsh": (0.3, 0.4, 0.5, 0.6)}
    results = []
    for cell in training_time.cells(config):
        place = sum(earlier.method == cell.method and earlier.points is None for earlier, _ in results)
        figure = scores[cell.method][place] if cell.points is None else None
        seconds = 10.0 * (place + 1) if cell.points is None else cell.points / 100
        results.append((cell, {"map_expected": figure, "seconds": seconds}))
    targets, whole, reached, few = training_time.render(config, results).tables
    assert targets.headings == ["method", ".50", ".60", ".70", ".80"]
    assert targets.rows == [["ADSH", "10.0 s", "20.0 s", "20.0 s", "40.0 s"],
                            ["DPSH", "30.0 s", "40.0 s", "not reached", "not reached"]]  # fmt: skip
    assert reached.rows[1] == ["DPSH", ".3000 in 10.0 s", ".4000 in 20.0 s", ".5000 in 30.0 s", ".6000 in 40.0 s"]
    assert whole.title.startswith("Time of whole trainings")
    assert few.title.startswith("Time of 5 iterations")
    outer = [cell.option("outer") for cell, _ in results if cell.method == "dpsh" and cell.points is None]
    assert outer == [19, 38, 75, None]  # of its authors' 150


@pytest.fixture
def no_figures_drawn(monkeypatch):
    monkeypatch.setattr("adsh.experiments.drawing.side_by_side", lambda panels: None)


def test_the_best_are_marked_in_every_format():
    table = Table("t", "A title", ["method", "12 bits"], [["ADSH & Co_1", Best(".9 ± .1")]], ["50 % of it"])
    assert "| ADSH & Co_1 | **.9 ± .1** |" in markdown(table)
    assert r"ADSH \& Co\_1 & \textbf{.9 $\pm$ .1} \\" in latex(table)
    assert r"50 \% of it" in latex(table)
    assert "<th scope=row>ADSH &amp; Co_1</th><td><b>.9 ± .1</b></td>" in html(table)


def test_the_papers_best_is_adsh_everywhere():
    """As its tables print in bold: an error in copying them would show."""
    for of_dataset in MAP.values():
        for place in range(4):
            assert max(of_dataset, key=lambda method, at=place: of_dataset[method][at]) == "adsh"


def test_cells_that_differ_have_names_that_differ():
    cells = {Cell("adsh", 12, 0), Cell("adsh", 12, 0, points=5), Cell("adsh", 12, 0, (("gamma", 0.1),)),
             Cell("adsh", 12, 0, (("gamma", 1e-4),)), Cell("adsh", 12, 0, query_split="validation"),
             Cell("adsh", 12, 1), Cell("adsh", 24, 0), Cell("adsh", 12, 0, (("network", "frozen:tiny"),)),
             Cell("adsh", 12, 0, measure="cases")}  # fmt: skip
    names = {cell.name for cell in cells}
    assert len(names) == len(cells)
    assert not any(set(name) & set("/: \\") for name in names)
