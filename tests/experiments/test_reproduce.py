"""Every experiment end to end on digits, and what a stopped run leaves."""

from __future__ import annotations

import json
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

import adsh
from adsh.errors import AdshError, InputError
from adsh.experiments import EXPERIMENTS, ExperimentConfig, reproduce, runner
from adsh.experiments.experiment_data import ExperimentData
from adsh.experiments.figures import networks
from adsh.experiments.measure import build_model, train
from adsh.experiments.run import experiment

from .configs import CHEAP, DIGITS

ROW = {"method", "bits", "seed", "map_expected", "map_stable", "map_network", "paper", "seconds", "device", "commit"}


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    out = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        for method in networks.OWN_NETWORKS:  # AlexNet and dsh_net would take most of the time of all
            patch.setitem(networks.OWN_NETWORKS, method, "linear")
        yield out, reproduce(["all"], DIGITS, out, tex=True)


def test_every_experiment_leaves_rows_tables_and_figures(everything):
    out, outcome = everything
    assert outcome.failed == {}
    assert list(outcome.files) == list(EXPERIMENTS)
    for name in EXPERIMENTS:
        rows = json.loads((out / f"{name}.json").read_text())
        assert len(rows) == len(experiment(name).cells(DIGITS))
        if name not in ("cases", "scale", "new-items"):
            assert all(row.keys() >= ROW for row in rows)
        assert "| --- |" in (out / f"{name}.md").read_text()
        assert r"\begin{tabular}" in (out / f"{name}.tex").read_text()
    drawn = {path.stem for path in out.glob("*.png")}
    assert drawn == {
        "top-k", "top-k-bits", "pr", "time", "hyper", "columns", "ties", "scale", "classes", "classes-imbalance",
    }  # fmt: skip


def test_the_page_shows_them_all(everything):
    page = everything[1].page.read_text()
    for name in EXPERIMENTS:
        assert f'<h2 id="{name}">' in page
    assert page.count("<svg") == 10
    assert page.count('class="case"') == 4 * 8  # methods, queries
    assert "data:image/png" in page


def test_records_hold_no_images_of_the_data(everything):
    out, _ = everything
    for path in (*out.glob("*.json"), out / "cells.jsonl"):
        assert "data:image" not in path.read_text()


def test_a_second_run_repeats_nothing(everything):
    out, outcome = everything
    cells = out / "cells.jsonl"
    before = cells.stat().st_mtime_ns
    again = reproduce(["table1", "ties"], DIGITS, out)
    assert (again.ran, again.failed) == (0, {})
    assert again.reused == 36  # twelve methods and six more, at two lengths
    assert cells.stat().st_mtime_ns == before
    assert outcome.ran == len(cells.read_text().splitlines())
    assert not (out / "cells").exists()


def test_figures_are_those_of_the_method_itself(everything):
    out, _ = everything
    rows = json.loads((out / "table1.json").read_text())
    row = next(row for row in rows if row["method"] == "itq" and row["bits"] == 12)
    data = ExperimentData(DIGITS)
    parts = data.split(0)
    items = (np.asarray(data.source.items).reshape(len(data.labels), -1) / 255).astype(np.float32)
    method = adsh.methods.create("itq", bits=12, seed=0).fit(items[parts.database], data.labels.take(parts.database))
    known = data.labels.take(parts.queries), data.labels.take(parts.database)
    found = adsh.metrics.mean_average_precision(
        method.encode(items[parts.queries]), method.database_codes_, *known, bits=12
    )
    assert row["map_expected"] == pytest.approx(found, abs=1e-5)


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    class Enough(Exception):
        pass

    def stop(done, total, cell):
        if done == 2:
            raise Enough

    with pytest.raises(Enough):
        reproduce(["table1", "table2"], CHEAP, tmp_path, on_cell=stop)
    assert len(list(tmp_path.glob("cells/*.json"))) == 2
    outcome = reproduce(["table1", "table2"], CHEAP, tmp_path)
    assert (outcome.reused, outcome.ran) == (2, 4)
    assert not (tmp_path / "cells").exists()
    assert len((tmp_path / "cells.jsonl").read_text().splitlines()) == 6


def test_latex_is_written_on_demand(tmp_path):
    few = replace(CHEAP, methods=("itq",), bits=(8,))
    reproduce(["table1"], few, tmp_path)
    assert not list(tmp_path.glob("*.tex"))
    outcome = reproduce(["table1"], few, tmp_path, run=False, tex=True)
    assert tmp_path / "table1.tex" in outcome.files["table1"]
    assert r"\begin{tabular}" in (tmp_path / "table1.tex").read_text()


def test_records_can_be_rendered_without_running_the_rest(tmp_path):
    reproduce(["table1"], replace(CHEAP, methods=("itq",)), tmp_path)
    outcome = reproduce(["table1"], CHEAP, tmp_path, run=False)
    assert (outcome.ran, outcome.reused) == (0, 2)
    assert "ITQ" in (tmp_path / "table1.md").read_text()
    with pytest.raises(InputError, match="holds no cell of hyper"):
        reproduce(["hyper"], CHEAP, tmp_path, run=False)


def test_tables_include_methods_that_were_run_before(tmp_path):
    reproduce(["table1"], replace(CHEAP, methods=("itq",)), tmp_path, tune=True)
    outcome = reproduce(["table1"], replace(CHEAP, methods=("lin_lin",)), tmp_path, tune=True)
    assert (outcome.reused, outcome.ran) == (0, 2 + 4)  # lengths, and penalties: one beyond the end of the grid
    rows = json.loads((tmp_path / "table1.json").read_text())
    assert {row["method"] for row in rows} == {"itq", "lin_lin"}
    assert reproduce(["table1"], replace(CHEAP, methods=("itq",)), tmp_path, tune=True).ran == 0
    assert {row["method"] for row in json.loads((tmp_path / "choices.json").read_text())} == {"lin_lin"}


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            {"protocol": "all"},
            "out holds cells of protocol holdout, not of protocol all: name another folder with --out",
        ),
        ({"k": 10}, "holds cells of no k, not of k 10"),
        ({"features": "features.npy"}, "out holds cells of other features, not of these: name another folder"),
        ({"features": None}, "holds cells of other features, not of no features"),
        ({"features": None, "network": "tiny"}, "holds cells of other features, not of no features"),
    ],
)
def test_cells_of_something_else_are_not_mixed_in(tmp_path, monkeypatch, other, said):
    monkeypatch.chdir(tmp_path)
    few = replace(CHEAP, methods=("itq",), bits=(8,))
    rng = np.random.default_rng(0)
    for name in ("features.npy", "first.npy"):
        np.save(name, rng.normal(size=(1797, 16)).astype(np.float32))
    reproduce(["table1"], replace(few, features="first.npy"), "out")
    for run in (True, False):
        with pytest.raises(InputError, match=said):
            reproduce(["table1"], replace(few, **({"features": "first.npy"} | other)), "out", run=run)
    elsewhere = replace(few, features="not/here.npy")  # rendered where the features are not available
    assert reproduce(["table1"], elsewhere, "out", run=False).reused == 1


def test_a_folder_of_another_k_is_not_taken_for_one_of_the_usual(tmp_path):
    few = replace(CHEAP, methods=("itq",), bits=(8,))
    reproduce(["table1"], replace(few, k=10), tmp_path)
    for run in (True, False):
        with pytest.raises(InputError, match="holds cells of k 10, not of no k"):
            reproduce(["table1"], few, tmp_path, run=run)


def test_a_folder_is_of_one_source_whatever_it_is_called(tmp_path):
    rng = np.random.default_rng(0)
    for place, classes in (("a", 3), ("b", 4)):
        (tmp_path / place).mkdir()
        arrays = {"images": rng.normal(size=(90, 16)).astype(np.float32), "labels": np.arange(90) % classes}
        np.savez(tmp_path / place / "photos.npz", **arrays)
    settings = [ExperimentConfig(str(tmp_path / place / "photos.npz"), bits=(8,), methods=("itq",)) for place in "ab"]
    assert reproduce(["table1"], settings[0], tmp_path / "out").ran == 1
    with pytest.raises(InputError, match="holds cells of other labels, not of these"):
        reproduce(["table1"], replace(settings[1], bits=(8, 12)), tmp_path / "out")


@pytest.mark.parametrize(("protocol", "k"), [("holdout", 90), ("coco", None)])
def test_coco_has_no_cutoff_of_map(tmp_path, protocol, k):
    """As the authors' figures on MS-COCO have it; others of several labels an item have 5,000."""
    hot = np.eye(3, dtype=int)[np.arange(90) % 3] | np.eye(3, dtype=int)[np.arange(90) % 2]
    np.savez(tmp_path / "tags.npz", images=np.zeros((90, 4), dtype=np.float32), labels=hot)
    assert ExperimentData(ExperimentConfig(str(tmp_path / "tags.npz"), protocol=protocol)).k == k


def test_a_collection_of_fewer_items_than_sdh_has_anchors_is_compared_as_well(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(90) % 3
    np.savez(tmp_path / "few.npz", images=rng.normal(size=(90, 16)).astype(np.float32), labels=labels)
    config = ExperimentConfig(str(tmp_path / "few.npz"), bits=(8,), methods=("sdh", "sdh_d"))
    outcome = reproduce(["table1", "table2"], config, tmp_path / "out")
    assert (outcome.ran, outcome.failed) == (2, {})


def test_a_folder_without_a_cell_is_of_nothing(tmp_path):
    few = replace(CHEAP, methods=("itq",), bits=(8,))
    assert reproduce(["table1"], replace(few, protocol="59k"), tmp_path).failed
    assert reproduce(["table1"], few, tmp_path).ran == 1


def test_names_that_leave_nothing_are_refused(tmp_path):
    with pytest.raises(InputError, match="--method sdh_d: not in table1, which has itq, lin_lin, "):
        reproduce(["table1"], replace(CHEAP, methods=("sdh_d",)), tmp_path)
    with pytest.raises(InputError, match="--max-points 10: scale has no size so small"):
        reproduce(["scale"], replace(CHEAP, methods=(), max_points=10), tmp_path)


def test_the_page_of_cases_alone_has_their_images(everything):
    out, _ = everything
    outcome = reproduce(["cases"], DIGITS, out)
    assert outcome.ran == 0
    assert outcome.page == out / "cases.html"
    assert "data:image/png" in outcome.page.read_text()


def test_the_rows_of_networks_have_the_figures_of_the_appendix(monkeypatch):
    monkeypatch.setitem(networks.OWN_NETWORKS, "dsh", "dsh_net")  # `everything` has another
    config = ExperimentConfig("cifar10", network="efficientnet_lite0", methods=("dsh",))
    done = [(cell, {"bits": cell.bits, "map_expected": 0.5, "paper": 0.9}) for cell in networks.cells(config)]
    assert [row["paper"] for row in networks.render(config, done).rows] == [
        0.6157, 0.6512, 0.6607, 0.6755, 0.6036, 0.6829, 0.7245, 0.7657,
    ]  # fmt: skip


def test_a_cell_that_the_machine_cannot_do_leaves_the_others_alone(tmp_path, monkeypatch):
    def short(cell, data):
        if cell.bits == 8:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB\nmore")
        return measured(cell, data)

    measured = runner.measure
    monkeypatch.setattr(runner, "measure", short)
    outcome = reproduce(["table1"], replace(CHEAP, methods=("itq",)), tmp_path)
    assert outcome.ran == 1
    assert outcome.failed == {"itq-8bits-seed0": "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"}


def test_a_killed_process_is_reported_in_one_line(tmp_path, monkeypatch):
    class Pool(runner.ProcessPoolExecutor):
        def submit(self, *_):
            raise BrokenProcessPool("A process in the process pool was terminated abruptly")

    monkeypatch.setattr(runner, "ProcessPoolExecutor", Pool)
    with pytest.raises(AdshError, match="one of the 2 processes was killed.*finished cells are not run again"):
        reproduce(["table1"], CHEAP, tmp_path, jobs=2)
    with pytest.raises(InputError, match="nothere"):
        reproduce(["table1"], replace(CHEAP, dataset="nothere"), tmp_path / "other", jobs=2)


def test_side_by_side_gives_the_same_rows(tmp_path):
    def rows(out):
        found = json.loads((out / "table1.json").read_text())
        return [{key: value for key, value in row.items() if key not in ("seconds", "commit")} for row in found]

    few = replace(CHEAP, methods=("itq", "adsh"), bits=(8,))
    for out, jobs in ((tmp_path / "one", 1), (tmp_path / "two", 2)):
        assert reproduce(["table1"], few, out, jobs=jobs).ran == 2
    assert rows(tmp_path / "one") == rows(tmp_path / "two")


def test_several_seeds_are_averaged_with_their_spread(tmp_path):
    reproduce(["table1"], replace(CHEAP, methods=("itq",), seeds=(0, 1, 2), bits=(12,)), tmp_path)
    rows = json.loads((tmp_path / "table1.json").read_text())
    figures = [row["map_expected"] for row in rows]
    text = (tmp_path / "table1.md").read_text()
    assert f"{np.mean(figures):.4f}"[1:] + " ± " + f"{np.std(figures, ddof=1):.4f}"[1:] in text
    assert "Means over 3 seeds (0, 1, 2)" in text


def test_a_cell_that_fails_leaves_the_others(tmp_path):
    outcome = reproduce(["table1"], replace(CHEAP, bits=(12, 300), methods=("itq", "sdh")), tmp_path)
    assert len(outcome.failed) == 1  # ITQ has at most as many bits as features: 192
    assert "192" in next(iter(outcome.failed.values()))
    assert outcome.ran == 3
    assert "| ITQ | " in (tmp_path / "table1.md").read_text()


@pytest.mark.parametrize(
    ("what", "config", "message"),
    [
        (["table9"], DIGITS, "'table9' is no experiment: choose among table1"),
        ([], DIGITS, "no experiment is named"),
        (["table1"], replace(DIGITS, dataset="nothing-here"), "nothing-here"),
    ],
)
def test_mistakes_are_reported_before_anything_runs(tmp_path, what, config, message):
    with pytest.raises(InputError, match=message):
        reproduce(what, config, tmp_path / "out")
    assert not (tmp_path / "out" / "cells").exists()


def test_an_unknown_method_is_refused():
    with pytest.raises(InputError, match="method 'adhs': choose among adsh, lsh"):
        ExperimentConfig("digits", methods=("adhs",))


def test_features_must_fit_the_data(tmp_path):
    np.save(tmp_path / "f.npy", np.zeros((3, 2), dtype=np.float32))
    outcome = reproduce(["table1"], replace(CHEAP, features=str(tmp_path / "f.npy"), methods=("itq",)), tmp_path)
    assert "(3, 2): digits needs (1797, d)" in next(iter(outcome.failed.values()))


@pytest.mark.parametrize("method", ["adsh", "dsh"])
@pytest.mark.parametrize("share", [3, 1])
def test_a_method_is_timed_on_as_many_points_as_its_cell_says(method, share):
    """The whole database too, where a baseline would otherwise learn from the protocol's sample."""

    class Watched:
        name = "watched"

        def fit(self, given, known, train=None):
            self.points = len(given if train is None else train)

    data, model = ExperimentData(DIGITS), Watched()
    database = data.split(0).database
    data._splits[0] = replace(data.split(0), training=database[::10])
    points = len(database) // share
    train(DIGITS.cell(method, 8, 0, points), data, model)
    assert model.points == points


def test_features_of_image_files_are_enough_for_methods_on_features(tmp_path):
    rng = np.random.default_rng(0)
    for number in range(40):
        (tmp_path / "photos" / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(
            tmp_path / "photos" / "ab"[number % 2] / f"{number}.png"
        )
    np.save(tmp_path / "features.npy", rng.normal(size=(40, 6)))
    config = ExperimentConfig(
        str(tmp_path / "photos"), features=str(tmp_path / "features.npy"), bits=(4,), methods=("itq",)
    )
    assert reproduce(["table1"], config, tmp_path / "out").failed == {}


@pytest.mark.parametrize("compiled", [False, True])
def test_cells_that_are_compared_are_compiled_the_same_way_however_long_they_train(compiled):
    config = replace(DIGITS, network="dsh_net", preset="modern", compile=compiled)
    for outer in (1, 99):
        model = build_model(config.cell("dsh", 8, 0, outer=outer), ExperimentData(config))
        assert model.recipe == {"compile": "reduce-overhead"}
