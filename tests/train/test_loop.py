import copy

import numpy as np
import pytest
import torch

from adsh.config import Recipe
from adsh.data import as_items
from adsh.data.loader import DeviceLoader
from adsh.errors import InputError, TrainingError
from adsh.learn import CodeTable
from adsh.networks import create_network
from adsh.train.checkpoint import Checkpoints
from adsh.train.loop import Trainer, batch_cuts, learn
from adsh.train.step import Step

from ..reference import paper
from .loaders import InMemory

CPU = torch.device("cpu")


def run(blobs, seed=0, **values):
    points, labels = blobs
    torch.manual_seed(0)
    network = create_network("linear", 8, (8,))
    table = CodeTable(labels, 8)
    calls = []
    update = table.update
    table.update = lambda omega, U, gamma, signed: (
        calls.append({"omega": omega, "U": U.clone(), "signed": signed}) or update(omega, U, gamma, signed=signed)
    )
    values = {"samples": 60, "outer": 3, "inner": 2, "batch_size": 16, "optimizer": "adamw", "lr": 1e-2} | values
    history = learn(network, DeviceLoader(as_items(points), CPU), table, Recipe(**values), device=CPU, seed=seed)
    return network, table, calls, history


def test_v_is_updated_after_every_epoch_or_once_an_outer_iteration(blobs):
    assert len(run(blobs, codes_after="epoch")[2]) == 6
    assert len(run(blobs, codes_after="outer")[2]) == 3


def test_v_is_swept_as_often_as_the_recipe_says(blobs):
    _, _, calls, _ = run(blobs, sweeps=3)
    assert len(calls) == 9
    assert all(torch.equal(calls[0]["U"], call["U"]) for call in calls[1:3])


def test_omega_is_new_every_outer_iteration_and_the_same_within(blobs):
    _, _, calls, _ = run(blobs, codes_after="epoch")
    assert np.array_equal(calls[0]["omega"], calls[1]["omega"])
    assert not np.array_equal(calls[1]["omega"], calls[2]["omega"])
    assert all(len(np.unique(call["omega"])) == 60 for call in calls)


def test_fresh_outputs_are_those_of_the_network_and_stale_ones_are_older(blobs):
    points, _ = blobs
    for collect in ("fresh", "stale"):
        network, _, calls, _ = run(blobs, collect=collect)
        with torch.no_grad():
            now = torch.tanh(network(torch.tensor(points[calls[-1]["omega"]]).float()))
        assert torch.allclose(calls[-1]["U"], now, atol=1e-6) == (collect == "fresh")


def test_sign_of_u_enters_q_where_the_recipe_says(blobs):
    assert all(call["signed"] for call in run(blobs, signed=True)[2])
    assert not any(call["signed"] for call in run(blobs)[2])


def test_the_history_says_where_training_is(blobs):
    *_, table, _, history = run(blobs)
    assert [record["outer"] for record in history] == [1, 2, 3]
    assert {"loss", "seconds", "rows", "lr", "items_per_second"} <= history[0].keys()
    assert history[-1]["loss"] < history[0]["loss"]
    assert history[-1]["rows"] == len(table.rows)


def test_one_seed_gives_one_result_and_another_seed_another(blobs):
    a, b, c = run(blobs, seed=1), run(blobs, seed=1), run(blobs, seed=2)
    assert all(torch.equal(p, q) for p, q in zip(a[0].parameters(), b[0].parameters(), strict=True))
    assert np.array_equal(a[1].dense(), b[1].dense())
    assert not np.array_equal(a[2][0]["omega"], c[2][0]["omega"])


def test_without_a_seed_it_is_zero(blobs):
    points, labels = blobs
    weights = []
    for seed in ({}, {"seed": 0}):
        torch.manual_seed(0)
        network = torch.nn.Linear(8, 8)
        recipe = Recipe(samples=20, outer=1, inner=1, batch_size=8)
        learn(network, DeviceLoader(as_items(points), CPU), CodeTable(labels, 8), recipe, device=CPU, **seed)
        weights.append(network.weight.detach().clone())
    assert torch.equal(*weights)


def test_separate_queries_are_learned_without_gamma_and_one_may_be_sampled(blobs):
    points, labels = blobs
    table = CodeTable(labels, 8, queries=labels[:40])
    recipe = Recipe(samples=1, outer=2, inner=1, gamma=200.0)
    history = learn(torch.nn.Linear(8, 8), DeviceLoader(as_items(points[:40]), CPU), table, recipe, device=CPU)
    assert len(history) == 2
    assert (table.dense() != 0).all()


def test_a_rate_that_makes_training_diverge_is_reported_as_such(blobs):
    with pytest.raises(TrainingError, match=r"in outer iteration 1: .*lower lr, now 1e\+38"):
        run(blobs, optimizer="sgd", lr=1e38)


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_a_run_goes_on_from_where_another_stood(blobs, ema):
    """The same network, codes and rates as without the interruption, whatever the parts were when it went on."""
    points, labels = blobs
    recipe = Recipe(samples=60, outer=4, inner=3, batch_size=16, lr=0.05, optimizer="adamw", schedule="cosine", ema=ema)

    def parts(state):
        modules = [state.network, state.optimizer] + ([state.average] if ema else [])
        return copy.deepcopy([*(m.state_dict() for m in modules), state.table.state(), state.history])

    def learned(**hooks):
        torch.manual_seed(0)
        network, table = torch.nn.Linear(8, 8), CodeTable(labels, 8)
        history = learn(network, DeviceLoader(as_items(points), CPU), table, recipe, device=CPU, **hooks)
        return network, table, history

    seen = []
    whole = learned(on_iteration=lambda state: seen.append(parts(state)))

    def resume(state):
        network, optimizer, *average, table, history = seen[1]
        state.network.load_state_dict(network)
        state.optimizer.load_state_dict(optimizer)
        for weights in average:
            state.average.load_state_dict(weights)
        state.table.restore(table)
        state.history.extend(history)

    again = learned(on_start=resume)
    assert torch.equal(again[0].weight, whole[0].weight)
    assert np.array_equal(again[1].dense(), whole[1].dense())
    for name in ("outer", "loss", "lr", "rows"):
        assert [record[name] for record in again[2]] == [record[name] for record in whole[2]], name
    assert [len(stand[-1]) for stand in seen] == [1, 2, 3, 4]


def test_the_history_has_the_objective_a_pair_and_what_time_went_where(blobs, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr("time.perf_counter", lambda: float(next(clock)))
    _, table, calls, history = run(blobs, codes_after="epoch")
    S = paper.weighted(np.where(blobs[1][calls[-1]["omega"]][:, None] == blobs[1], 1.0, -1.0))
    J = paper.objective(calls[-1]["U"].double().numpy(), table.dense(), S, calls[-1]["omega"], Recipe().gamma)
    assert history[-1]["loss"] == pytest.approx(J / (60 * 300), rel=1e-6)
    assert [record["code_update_seconds"] for record in history] == [2.0] * 3  # one tick an epoch
    assert [record["seconds"] for record in history] == [5.0] * 3
    assert [record["items_per_second"] for record in history] == [60 * 2 / 5.0] * 3
    assert [record["set_up_seconds"] for record in history] == [0.0] * 3


def test_a_feed_on_the_device_is_indexed_by_tensors_and_any_other_by_arrays(blobs):
    points, labels = torch.tensor(blobs[0]).float(), blobs[1]

    weights = []
    for feed in (InMemory(points), InMemory(points, on_device=True)):
        torch.manual_seed(0)
        network = torch.nn.Linear(8, 8)
        recipe = Recipe(samples=30, outer=2, inner=2, batch_size=8, collect="stale")
        learn(network, feed, CodeTable(labels, 8), recipe, device=CPU)
        weights.append(network.weight.detach().clone())
    assert torch.equal(*weights)


def test_fresh_outputs_are_those_of_the_activation(blobs):
    points, labels = torch.tensor(blobs[0]).float(), blobs[1]
    network, table, seen = torch.nn.Linear(8, 8), CodeTable(labels, 8), []
    update = table.update
    table.update = lambda omega, U, *rest, **more: seen.append((omega, U)) or update(omega, U, *rest, **more)
    recipe = Recipe(samples=20, outer=1, inner=1, lr=1e-3, collect="fresh")
    learn(network, InMemory(points), table, recipe, device=CPU, activation=torch.nn.functional.softsign)
    omega, U = seen[-1]
    assert torch.allclose(U, torch.nn.functional.softsign(network(points[omega])), atol=1e-6)


def test_a_plain_function_and_earlier_names_are_taken_by_learn(blobs):
    points, labels = torch.tensor(blobs[0]).float(), blobs[1]
    recipe, weights, records = Recipe(samples=20, outer=2, inner=1), [], []
    for options in (
        {"loader": InMemory(points), "on_iteration": lambda state: records.append(len(state.history))},
        {"feed": lambda indices: points[indices], "after_outer": lambda state: records.append(len(state.history))},
    ):
        torch.manual_seed(0)
        network = torch.nn.Linear(8, 8)
        learn(network, table=CodeTable(labels, 8), recipe=recipe, device=CPU, **options)
        weights.append(network.weight.detach().clone())
    assert torch.equal(*weights)
    assert records == [1, 2, 1, 2]


def test_batches_are_full_but_the_last_and_never_of_one():
    assert [len(b) for b in np.split(np.arange(2000), batch_cuts(2000, 64))] == [64] * 31 + [16]
    assert [len(b) for b in np.split(np.arange(129), batch_cuts(129, 64))] == [64, 65]
    assert [len(b) for b in np.split(np.arange(257), batch_cuts(257, 64))] == [64, 64, 64, 65]
    assert [len(b) for b in np.split(np.arange(5), batch_cuts(5, 64))] == [5]
    assert [len(b) for b in np.split(np.arange(1), batch_cuts(1, 64))] == [1]


class Recorder(torch.nn.Linear):
    """A network that remembers the batches it was trained on."""

    def __init__(self):
        super().__init__(8, 8)
        self.batches = []

    def forward(self, x):
        if self.training:
            self.batches.append(x.detach().clone())
        return super().forward(x)


def record(blobs, monkeypatch=None, **values):
    points, labels = blobs
    torch.manual_seed(0)
    network, table = Recorder(), CodeTable(labels, 8)
    values = {"samples": 60, "outer": 2, "inner": 2, "batch_size": 20, "lr": 0.1} | values
    history = learn(network, DeviceLoader(as_items(points), CPU), table, Recipe(**values), device=CPU)
    return network, table, history


def test_mini_batches_are_reshuffled_between_epochs_where_the_recipe_says(blobs):
    for reshuffle in (True, False):
        seen = record(blobs, outer=1, reshuffle=reshuffle)[0].batches
        assert len(seen) == 6
        first, second = torch.cat(seen[:3]), torch.cat(seen[3:])
        assert torch.equal(first, second) == (not reshuffle)
        assert torch.equal(first.sort(dim=0)[0], second.sort(dim=0)[0])  # the same Omega


def test_the_network_is_trained_against_the_codes_as_they_are_now(blobs, monkeypatch):
    """With V updated after every epoch, the next epoch sees the new V'V and SV; once an outer, it does not."""
    gradients, gradient = [], Trainer._gradient
    monkeypatch.setattr(Trainer, "_gradient", lambda *given: gradients.append(gradient(*given)) or gradients[-1])
    record(blobs, outer=1, inner=3, codes_after="epoch")
    assert len(gradients) == 3
    assert not gradients[0].gram.any()  # V = 0
    assert gradients[1].gram.any()
    gradients.clear()
    record(blobs, outer=2, inner=3, codes_after="outer")
    assert len(gradients) == 2


def test_the_rate_of_the_schedule_is_the_rate_of_the_step(blobs):
    """Plain SGD moves a weight by rate times gradient: a rate of 0 from the start moves nothing."""
    torch.manual_seed(0)
    before = Recorder().weight.detach().clone()
    still, _, history = record(blobs, lr=0.0, weight_decay=0.0)
    assert torch.equal(still.weight, before)
    _, _, history = record(blobs, outer=12, inner=1, lr=1e-3, schedule="tenth")
    assert [r["lr"] for r in history] == pytest.approx([1e-3] * 11 + [1e-4])
    slow, _, _ = record(blobs, outer=1, inner=1, lr=1e-2, weight_decay=0.0, warmup=1.0)
    fast, _, _ = record(blobs, outer=1, inner=1, lr=1e-2, weight_decay=0.0)
    assert (slow.weight - before).norm() < 0.9 * (fast.weight - before).norm()


def test_weight_decay_of_adamw_leaves_biases_alone():
    step = Step(torch.nn.Linear(3, 2), Recipe(optimizer="adamw", weight_decay=0.1), 1, CPU)
    decays = {tuple(p.shape): g["weight_decay"] for g in step.optimizer.param_groups for p in g["params"]}
    assert decays == {(2, 3): 0.1, (2,): 0.0}


def test_dropout_is_drawn_from_the_seed_and_the_iteration(blobs):
    points, labels = blobs
    runs = []
    for noise in (1, 2):  # whatever was drawn before
        torch.manual_seed(0)
        network = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(8, 8))
        torch.manual_seed(noise)
        recipe = Recipe(samples=60, outer=2, inner=1, batch_size=20)
        learn(network, DeviceLoader(as_items(points), CPU), CodeTable(labels, 8), recipe, device=CPU)
        runs.append(network[1].weight.detach().clone())
    assert torch.equal(*runs)


def test_a_network_with_nothing_to_train_is_refused(blobs):
    frozen = torch.nn.Linear(8, 8).requires_grad_(False)
    with pytest.raises(InputError, match="no parameters to train"):
        learn(frozen, DeviceLoader(as_items(blobs[0]), CPU), CodeTable(blobs[1], 8), Recipe(), device=CPU)


def rates(batches=4, **values):
    step = Step(torch.nn.Linear(2, 2), Recipe(**values), batches, CPU)
    seen = []
    for taken in range(values["outer"] * values["inner"] * batches):
        step.taken = taken
        seen.append(step.rate)
    return seen


def test_the_schedules_are_those_of_the_presets():
    log = rates(outer=5, inner=2, lr=1e-4, lr_end=1e-6, schedule="log")
    assert log[:4] == pytest.approx([1e-4] * 4)  # one rate an epoch
    assert log[-1] == pytest.approx(1e-6)
    assert log[4] / log[0] == pytest.approx(0.01 ** (1 / 9))
    cosine = rates(outer=10, inner=1, lr=1.0, schedule="cosine", warmup=0.1)
    assert cosine[0] == pytest.approx(0.25)
    assert max(cosine) == pytest.approx(1.0, abs=0.03)
    assert cosine[-1] < 0.01


@pytest.mark.parametrize(("outer", "interval"), [(50, 10), (150, 50)])
def test_the_rate_falls_when_the_authors_programs_let_it_fall(outer, interval):
    """Written out: ADSH's checks for 10, 20, … after iteration `iter`, DPSH's sets .1 ** (epoch // 50) after one."""
    rate, expected = 0.05, []
    for iteration in range(outer):
        expected += [rate] * 4
        if iteration and iteration % interval == 0:
            rate /= 10
    assert rates(outer=outer, inner=1, lr=0.05, schedule="tenth", drop_interval=interval) == pytest.approx(expected)


@pytest.mark.parametrize("divisor", ["batch", "nominal"])
def test_the_gradient_of_a_short_batch_is_divided_as_the_recipe_says(blobs, divisor):
    """The authors' MATLAB program divides by the batch size whatever is left of an epoch: update_net.m."""
    torch.manual_seed(0)
    network = torch.nn.Linear(blobs[0].shape[1], 4)
    values = {"samples": 10, "outer": 1, "inner": 1, "batch_size": 8, "lr": 0.1, "weight_decay": 0.5}
    bias, seen = network.bias.detach().clone(), []
    table, loader = CodeTable(blobs[1], 4), DeviceLoader(as_items(blobs[0]), CPU)

    def make_gradient(table, omega, gamma, device):
        return Ones(seen)

    learn(network, loader, table, Recipe(**values, divisor=divisor), device=CPU, make_gradient=make_gradient,
          activation=torch.nn.Identity())  # fmt: skip
    assert seen == [8, 2]
    for size in seen:
        ones = 1.0 if divisor == "batch" else size / 8  # the sum of 1 / size over the batch, or of 1 / 8
        bias = bias - 0.1 * (ones + 0.5 * bias)
    assert torch.allclose(network.bias.detach(), bias, atol=1e-6)


class Ones:
    """The gradient of the mean of the outputs, which notes the sizes of batches."""

    def __init__(self, seen):
        self.seen = seen

    def __getitem__(self, positions):
        return self

    def __call__(self, outputs):
        self.seen.append(len(outputs))
        return torch.ones_like(outputs) / len(outputs)


def test_a_checkpoint_of_before_a_value_of_a_recipe_is_as_its_default(tmp_path):
    now = Recipe(centre=1.0).saved()
    before = {name: str(value) for name, value in now.items() if name != "centre"}
    Checkpoints(tmp_path, 1, now, {})._check_same(tmp_path, {"data": {}, "configuration": before})
    with pytest.raises(InputError, match=r"another configuration: centre 0.5, not 1.0"):
        Checkpoints(tmp_path, 1, {**now, "centre": 0.5}, {})._check_same(
            tmp_path, {"data": {}, "configuration": before}
        )


def test_a_checkpoint_may_go_on_with_steps_taken_in_another_way(tmp_path):
    """`fast` was not recorded once, and short trainings were not compiled: theirs hold compile False."""
    before = {name: str(value) for name, value in Recipe(compile=False).saved().items()}
    for way in (False, True, "graph", "reduce-overhead"):
        now = Recipe(compile=way).saved()
        Checkpoints(tmp_path, 1, now, {})._check_same(tmp_path, {"data": {}, "configuration": before})
