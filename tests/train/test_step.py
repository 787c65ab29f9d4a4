"""The step's own parts: averaged weights, mirrored coding, augmentation from the recipe."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import adsh
import adsh.networks.preprocess
from adsh.config import Recipe, recipe
from adsh.data.augment import RandomFlip, RandomResizedCrop, RandomShift, augmentation
from adsh.errors import InputError, TrainingError
from adsh.learn import CodeTable
from adsh.learn.objective import ObjectiveTerms
from adsh.networks import create_network
from adsh.train.loop import network_outputs
from adsh.train.step import Step, _compile

from .loaders import InMemory

CPU = torch.device("cpu")


def some_terms(points: int, bits: int) -> ObjectiveTerms:
    table = CodeTable(np.arange(points) % 2, bits)
    return ObjectiveTerms.of(table, np.arange(points), 200.0)


def test_averaged_weights_follow_their_recurrence_and_end_in_the_network():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.BatchNorm1d(6))
    step = Step(network, Recipe(ema=0.9, lr=0.1, outer=1, inner=1), 3, CPU)
    expected = {name: tensor.clone().double() for name, tensor in network.state_dict().items()}
    for taken in (1, 2, 3):
        step(torch.randn(8, 4), some_terms(8, 6))
        keep = min(0.9, (1 + taken) / (10 + taken))
        for name, tensor in network.state_dict().items():
            expected[name] = keep * expected[name] + (1 - keep) * tensor if tensor.is_floating_point() else tensor
    assert not torch.allclose(network[0].weight, expected["0.weight"].float())
    step.finish()
    for name, tensor in network.state_dict().items():
        assert torch.allclose(tensor.double(), expected[name].double(), atol=1e-6), name


def test_without_averages_the_network_is_left_as_trained():
    network = torch.nn.Linear(4, 6)
    step = Step(network, Recipe(outer=1, inner=1), 1, CPU)
    assert step.average is None
    step(torch.randn(8, 4), some_terms(8, 6))
    before = network.weight.clone()
    step.finish()
    assert torch.equal(network.weight, before)


def test_what_is_for_a_gpu_is_not_done_on_a_cpu():
    network = torch.nn.Linear(4, 6)
    step = Step(network, Recipe(outer=1, inner=1, bf16=True, compile=True, ema=0.5), 1, CPU)
    assert not step.bf16
    assert step._forward is network
    assert not any(p.requires_grad for p in step.average.parameters())


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_the_last_layer_may_learn_faster(optimizer):
    network = adsh.create_network("mlp", 6, (4,))
    step = Step(network, Recipe(optimizer=optimizer, lr=0.1, head_lr=10.0, outer=1, inner=1), 1, CPU)
    step(torch.randn(8, 4), some_terms(8, 6))
    rates = {id(p): group["lr"] for group in step.optimizer.param_groups for p in group["params"]}
    assert {rates[id(p)] for p in network.head.parameters()} == {1.0}
    assert {rates[id(p)] for p in network.hidden.parameters()} == {0.1}


def test_any_gradient_and_any_activation_train():
    torch.manual_seed(0)
    network = torch.nn.Linear(3, 2)
    step = Step(network, Recipe(lr=0.5, weight_decay=0.0, outer=1, inner=1), 1, CPU, activation=torch.nn.Identity())
    inputs, before = torch.randn(5, 3), network.weight.detach().clone()
    seen = step(inputs, lambda outputs: outputs / 5)  # of the mean of |u|^2 / 2
    expected = before - 0.5 * (seen.T @ inputs) / 5
    assert torch.allclose(network.weight, expected, atol=1e-6)


def test_mirrored_coding_is_the_mean_over_an_image_and_its_mirror_image():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 4 * 5, 8)).eval()
    images = torch.rand(10, 3, 4, 5)
    got = torch.cat(list(network_outputs(network, InMemory(images), range(10), flip_tta=True)))
    with torch.no_grad():
        expected = torch.tanh((network(images) + network(images.flip(-1))) / 2)
    assert torch.allclose(got, expected, atol=1e-6)
    unmirrored = torch.cat(list(network_outputs(network, InMemory(images), range(10))))
    assert torch.allclose(unmirrored, torch.tanh(network(images)).detach(), atol=1e-6)
    features = torch.rand(10, 60)
    plain = torch.cat(list(network_outputs(network, InMemory(features), range(10), flip_tta=True)))
    assert torch.allclose(plain, torch.tanh(network(features)).detach())  # features have no mirror image


def test_a_model_codes_as_its_recipe_says_also_after_loading(tmp_path):
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (60, 8, 8, 3), dtype=np.uint8), np.arange(60) % 3
    model = adsh.ADSH(16, network="tiny", outer=2, recipe={"mirror": True, "flip": True, "shift": 0.2, "ema": 0.9})
    model.fit(images, labels)
    assert np.array_equal(model.encode(images), model.encode(images[:, :, ::-1]))
    model.save(tmp_path / "m")
    loaded = adsh.load(tmp_path / "m")
    assert loaded.recipe_.mirror
    assert np.array_equal(loaded.outputs(images), model.outputs(images))


def test_augmentation_is_what_the_recipe_says():
    steps = augmentation(Recipe(shift=0.125, flip=True), (32, 32, 3)).steps
    assert [type(step) for step in steps] == [RandomShift, RandomFlip]
    assert steps[0].pixels == 4
    crop = augmentation(Recipe(crop=0.35), (128, 96, 3)).steps[0]
    assert isinstance(crop, RandomResizedCrop)
    assert (crop.size, crop.scale) == (128, (0.35, 1.0))
    assert augmentation(Recipe(flip=True), (64,)) is None  # features
    assert augmentation(Recipe(), (32, 32, 3)) is None


def test_an_augmented_run_repeats_itself():
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (60, 8, 8, 3), dtype=np.uint8), np.arange(60) % 3
    recipe = {"flip": True, "shift": 0.2, "ema": 0.9}
    one, other = (  # on a GPU the sums of a gradient have no fixed order, and the last bit may differ
        adsh.ADSH(16, network="tiny", outer=2, recipe=recipe, device="cpu").fit(images, labels) for _ in range(2)
    )
    assert np.array_equal(one.outputs(images), other.outputs(images))
    plain = adsh.ADSH(16, network="tiny", outer=2).fit(images, labels)
    assert not np.array_equal(one.outputs(images), plain.outputs(images))


def test_an_unknown_value_of_a_recipe_is_refused(blobs):
    with pytest.raises(adsh.AdshError, match="'flop' is not a value of a recipe"):
        adsh.ADSH(8, outer=1, recipe={"flop": True}).fit(*blobs)


def test_a_recipe_sets_the_side_of_images_and_the_user_before_it():
    images = np.random.default_rng(0).integers(0, 256, (8, 20, 20, 3), dtype=np.uint8)
    settings = {"network": "alexnet", "outer": 1, "recipe": {"size": 70}, "device": "cpu"}
    for options, expected in ((None, 70), ({"size": 80}, 80)):
        model = adsh.ADSH(8, network_options=options, **settings).fit(images, np.arange(8) % 2)
        assert model.network_.preprocess.size == expected


def test_training_that_diverges_in_its_last_step_is_reported():
    """The outputs of an iteration are from before its steps: only those after the last show it."""
    rng = np.random.default_rng(0)
    with pytest.raises(TrainingError, match="diverged in outer iteration 1.* lower lr, now 1e"):
        adsh.ADSH(
            8, network="mlp", outer=1, inner=1, samples=60, batch_size=60, lr=1e30, progress=False,
            recipe={"optimizer": "sgd", "schedule": "constant", "warmup": 0.0},
        ).fit(rng.normal(size=(60, 4)), np.arange(60) % 3)  # fmt: skip


def test_options_of_a_network_are_not_for_a_module_that_is_built():
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 8))
    images = np.zeros((30, 8, 8, 3), dtype=np.uint8)
    with pytest.raises(InputError, match="size goes with a network's name: set it on the module itself"):
        adsh.ADSH(8, network=module, recipe={"size": 32}).fit(images, np.arange(30) % 3)


def test_a_preset_leaves_no_random_blocks_as_they_are():
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    model = adsh.ADSH(
        8, network="efficientnet_lite0", preset="fast", outer=1, samples=6, batch_size=6, progress=False,
        network_options={"weights": None, "size": 32},
    ).fit(images, np.arange(12) % 3)  # fmt: skip
    assert model.recipe_.fixed
    assert all(weight.requires_grad for weight in model.network_.parameters())


def test_a_module_of_ones_own_is_compiled_whole(monkeypatch):
    """One with `features` and `head` of its own may do more than the one after the other."""

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.features, self.head = torch.nn.Linear(4, 6), torch.nn.Linear(6, 8)

        def forward(self, x):
            return self.head(self.features(x).relu())

    monkeypatch.setattr(torch, "compile", lambda module, mode: module)
    own, x = Own(), torch.randn(5, 4)
    assert torch.equal(_compile(own, None)(x), own(x))
    ours, images = create_network("dsh_net", 8, (32, 32, 3)), torch.rand(2, 3, 32, 32)
    assert torch.equal(_compile(ours, None)(images), ours(images))


@pytest.mark.parametrize(("given", "way"), [({}, "graph"), ({"compile": True}, True), ({"compile": False}, False)])
def test_a_short_training_is_captured_and_compiled_only_on_request(given, way):
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    model = adsh.ADSH(
        8, network="dsh_net", outer=1, samples=6, batch_size=6, recipe=given, device="cpu", progress=False
    ).fit(images, np.arange(12) % 3)
    assert recipe("modern", "dsh_net").compile == "reduce-overhead"
    assert model.recipe_.compile == way
