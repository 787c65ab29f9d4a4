"""What all image networks share: sizes, channels, features, and a fit."""

import sys
import types

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import adsh
from adsh import create_network
from adsh.config import recipe
from adsh.errors import InputError, MissingExtraError
from adsh.learn import CodeTable
from adsh.networks.imresize import imresize
from adsh.networks.preprocess import Preprocess

SIDES = {"efficientnet_lite0": 224, "efficientnet_lite2": 260, "resnet18": 224, "dsh_net": 32, "cnn_f": 224}


@pytest.mark.parametrize(("name", "side"), SIDES.items())
def test_images_of_any_size_and_grey_ones_are_taken_at_the_size_of_the_weights(name, side):
    options = {"weights": None} if name.startswith("eff") else {}
    network = create_network(name, 12, (32, 32, 3), **options).eval()
    assert network.preprocess.size == side
    with torch.inference_mode():
        assert network.preprocess(torch.rand(2, 1, 40, 28)).shape == (2, 3, side, side)
        assert network.features(torch.rand(1, 3, 40, 28)).shape == (1, network.feature_size)
        assert network(torch.rand(1, 1, 8, 8)).shape == (1, 12)


def test_enlarging_is_bilinear_shrinking_is_antialiased_and_the_right_size_is_left_alone():
    x = torch.rand(2, 3, 32, 32)
    plain = Preprocess(64, mean=(0, 0, 0), std=(1, 1, 1))
    assert torch.equal(plain(x), functional.interpolate(x, (64, 64), mode="bilinear", align_corners=False))
    plain.size = 16
    shrunk = functional.interpolate(x, (16, 16), mode="bilinear", align_corners=False, antialias=True)
    assert torch.equal(plain(x), shrunk)
    for size in (32, None):
        plain.size = size
        assert torch.equal(plain(x), x)
    whole = Preprocess(64)
    grey = (x - torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)) / torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)
    late = functional.interpolate(grey, (64, 64), mode="bilinear", align_corners=False)
    assert torch.allclose(whole(x), late, atol=1e-5)
    plain.size, plain.interpolation = 64, "bicubic"
    assert torch.equal(plain(x), functional.interpolate(x, (64, 64), mode="bicubic", align_corners=False))
    plain.size = 16
    assert torch.equal(plain(x), shrunk)


def test_the_center_of_an_image_is_taken_as_the_authors_program_does():
    """Resized to 256, of which the inner 224 are seen: 16 pixels of rim on each side."""
    x = torch.rand(2, 3, 40, 30)
    resized = Preprocess(256)(x)
    cropped = Preprocess(224)
    cropped.center_crop_ratio = recipe("authors-pytorch", "alexnet").centre
    assert torch.equal(cropped(x), resized[..., 16:240, 16:240])
    as_it_is = Preprocess(None)
    as_it_is.center_crop_ratio = 0.5
    assert as_it_is(x).shape == x.shape


@pytest.mark.parametrize("network", ["tiny", "dsh_net", "frozen:tiny"])
def test_the_authors_preset_takes_the_center_where_the_network_resizes(network):
    images = np.random.default_rng(0).integers(0, 256, (20, 32, 32, 3), dtype=np.uint8)
    model = adsh.ADSH(8, network=network, preset="authors-pytorch", outer=1, progress=False)
    model.fit(images, np.arange(20) % 2)
    assert getattr(getattr(model.network_, "preprocess", None), "center_crop_ratio", None) == (
        0.875 if network == "dsh_net" else None
    )


def test_how_a_model_enlarges_is_its_own_after_loading(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), dtype=np.uint8)
    recipe = {"enlarge": "bicubic", "centre": 0.75, "outer": 1, "samples": 16}
    model = adsh.ADSH(8, network="dsh_net", recipe=recipe, progress=False).fit(images, np.arange(20) % 2)
    model.save(tmp_path / "model")
    again = adsh.load(tmp_path / "model")
    assert again.network_.preprocess.interpolation == "bicubic"
    assert again.network_.preprocess.center_crop_ratio == 0.75
    assert np.array_equal(again.encode(images), model.encode(images))


def test_frozen_blocks_of_efficientnet_lite_are_not_trained():
    images = np.random.default_rng(0).integers(0, 256, (20, 16, 16, 3), dtype=np.uint8)
    options = {"weights": None, "size": 32, "frozen_blocks": 2}
    torch.manual_seed(0)
    start = create_network("efficientnet_lite0", 8, (16, 16, 3), **options)
    recipe = {"outer": 1, "samples": 16, "batch_size": 8, "ema": 0, "optimizer": "adamw"}
    model = adsh.ADSH(8, network=start, recipe=recipe, progress=False).fit(images, np.arange(20) % 2)
    changed = {
        name for name, tensor in model.network_.state_dict().items() if not tensor.equal(start.state_dict()[name])
    }
    assert not {name for name in changed if name.startswith(("stem", "blocks.0.", "blocks.1."))}
    assert "blocks.2.depthwise.weight" in changed
    by_recipe = adsh.ADSH(
        8, network="efficientnet_lite0", network_options={"weights": None}, recipe={"size": 32, "fixed": 2, "outer": 1}
    ).fit(images, np.arange(20) % 2)
    assert [p.requires_grad for p in by_recipe.network_.parameters()] == [p.requires_grad for p in start.parameters()]
    with pytest.raises(InputError, match="frozen_blocks=99: give the number of blocks"):
        create_network("efficientnet_lite0", 8, (16, 16, 3), weights=None, frozen_blocks=99)


def test_options_are_taken_by_their_earlier_names_and_saved_under_them():
    options = {"weights": None, "interpolation": "bicubic", "center_crop_ratio": 0.5, "frozen_blocks": 2}
    earlier = {"weights": None, "enlarge": "bicubic", "centre": 0.5, "fixed": 2}
    first, second = (create_network("efficientnet_lite0", 8, (16, 16, 3), **o) for o in (options, earlier))
    assert first.adsh_spec == second.adsh_spec == {"name": "efficientnet_lite0", "options": earlier}
    assert repr(first) == repr(second)
    with pytest.raises(InputError, match="interpolation and enlarge are one option"):
        create_network("dsh_net", 8, (16, 16, 3), enlarge="bicubic", interpolation="bicubic")


def test_an_unknown_interpolation_or_crop_is_refused():
    with pytest.raises(InputError, match="center_crop_ratio=0: give the share of the side to keep"):
        create_network("dsh_net", 12, (32, 32, 3), center_crop_ratio=0)
    with pytest.raises(InputError, match="interpolation='nearest': choose bilinear or bicubic"):
        create_network("dsh_net", 12, (32, 32, 3), interpolation="nearest")
    with pytest.raises(InputError, match=r"center_crop_ratio=0.9: cnn_f subtracts the mean of whole images"):
        create_network("cnn_f", 12, (32, 32, 3), center_crop_ratio=0.9)
    with pytest.raises(InputError, match="network 'tiny' does not resize images that way"):
        create_network("tiny", 12, (32, 32, 3), interpolation="bicubic")


@pytest.mark.parametrize(("side", "size"), [(32, 224), (8, 16), (20, 5)])
def test_bicubic_resizing_of_cnn_f_is_matlabs(side, size):
    """Keys' cubic of a = -1/2, as torch has it with antialiasing; beyond the edge the image is mirrored."""
    images = torch.rand(2, 3, side, side, dtype=torch.float64)
    margin = side  # mirrored all around, then resized by a program that knows no edge
    mirrored = torch.from_numpy(
        np.pad(images.numpy(), [(0, 0), (0, 0), (margin, margin), (margin, margin)], "symmetric")
    )
    whole = torch.nn.functional.interpolate(mirrored, (3 * size,) * 2, mode="bicubic", antialias=True)
    expected = whole[..., size : 2 * size, size : 2 * size]
    assert torch.allclose(imresize(images, size), expected, atol=1e-6)
    assert imresize(torch.ones(1, 1, side, side), size).allclose(torch.ones(1, 1, size, size), atol=1e-6)


def test_the_preset_of_the_matlab_program_has_its_network():
    """The published file of CNN-F has 21 layers, none of them dropout; imresize is bicubic."""
    images = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), dtype=np.uint8)
    model = adsh.ADSH(8, network="cnn_f", preset="authors-matlab", outer=1, inner=1, progress=False)
    network = model._network(8, (8, 8, 3), recipe("authors-matlab", "cnn_f"), CodeTable(np.arange(6) % 2, 8)).eval()
    assert {layer.p for layer in network.modules() if isinstance(layer, torch.nn.Dropout)} == {0.0}
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
    expected = imresize(pixels, 224) * 255 - network.preprocess.mean
    assert torch.equal(network.preprocess(pixels), expected)
    usual = create_network("cnn_f", 8, (8, 8, 3))
    assert {layer.p for layer in usual.modules() if isinstance(layer, torch.nn.Dropout)} == {0.5}
    assert usual.preprocess.interpolation == "bilinear"


def test_the_smallest_network_has_features_too():
    network = create_network("tiny", 12, (8, 8, 3)).eval()
    assert network.features(torch.rand(2, 3, 8, 8)).shape == (2, network.feature_size)


@pytest.mark.parametrize("size", [0, -3, 1.5, True, "224", 10**6])
def test_a_size_that_is_none_is_refused(size):
    with pytest.raises(InputError, match="size="):
        create_network("resnet18", 8, (32, 32, 3), size=size)
    with pytest.raises(InputError, match="size="):
        create_network("dsh_net", 8, (32, 32, 3), size=size)


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(InputError, match='choose "same"'):
        create_network("efficientnet_lite0", 8, (32, 32, 3), padding="valid", weights=None)
    with pytest.raises(InputError, match="depth"):
        create_network("resnet18", 8, (32, 32, 3), depth=50)
    with pytest.raises(InputError, match="multiple of 8"):
        create_network("dsh_net", 8, (32, 32, 3), size=36)
    with pytest.raises(InputError, match="network_options go with a network's name"):
        adsh.ADSH(8, network=nn.Linear(4, 8), network_options={"size": 3}).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("dsh_net", {}),
        ("resnet18", {"size": 32}),
        pytest.param("resnet50", {"size": 32}, marks=pytest.mark.slow),
        pytest.param("alexnet", {"size": 64}, marks=pytest.mark.slow),
        ("efficientnet_lite1", {"size": 32, "weights": None}),
    ],
)
def test_adsh_learns_with_each(name, options):
    """Every layer takes part: without decay, only a gradient moves a parameter."""
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 2
    images = (rng.integers(0, 60, (24, 32, 32, 3)) + 150 * labels[:, None, None, None]).astype(np.uint8)
    plain = {"optimizer": "sgd", "schedule": "constant", "warmup": 0.0, "weight_decay": 0.0, "ema": 0.0}
    still, model = (
        adsh.ADSH(
            12,
            network=name,
            network_options=options,
            outer=2,
            samples=16,
            batch_size=8,
            lr=lr,
            recipe=plain,
            device="cpu",
        ).fit(images, labels)
        for lr in (0.0, 1e-2)
    )
    assert np.isfinite(model.history_[-1]["loss"])
    assert model.encode(images).shape == (24, 2)
    moved = zip(still.network_.parameters(), model.network_.parameters(), strict=True)
    assert all((before != after).any() for before, after in moved)


def test_large_images_are_coded_in_small_batches_on_a_cpu():
    network = create_network("dsh_net", 8, (32, 32, 3))
    seen = []
    network.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    model = adsh.ADSH(8, network=network, outer=1, samples=4, batch_size=4, device="cpu")
    images = np.zeros((70, 32, 32, 3), dtype=np.uint8)
    model.fit(images[:10], np.arange(10) % 2)
    model.network_.register_forward_pre_hook(lambda _, inputs: seen.append(len(inputs[0])))
    seen.clear()
    model.encode(images)
    assert max(seen) == network.evaluation_batch < 70


# timm's networks ------------------------------------------------------------------------------------------


class Body(nn.Module):
    """What timm.create_model gives, as far as it is used."""

    def __init__(self):
        super().__init__()
        self.num_features = 5
        self.pretrained_cfg = {"input_size": (3, 48, 48), "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}
        self.layer = nn.Linear(3, 5)

    def forward(self, x):
        assert x.shape[1:] == (3, 48, 48)
        return self.layer(x.mean((2, 3)))


def test_a_network_of_timms_is_wrapped(monkeypatch, tmp_path):
    calls = []

    def create_model(name, pretrained, num_classes):
        calls.append((name, pretrained, num_classes))
        if name != "known":
            raise RuntimeError(f"Unknown model ({name})\nmore")
        return Body()

    monkeypatch.setitem(sys.modules, "timm", types.SimpleNamespace(create_model=create_model))
    network = create_network("timm:known", 6, (32, 32, 3))
    assert calls == [("known", True, 0)]
    assert network(torch.rand(2, 3, 32, 32)).shape == (2, 6)
    assert network.adsh_spec == {"name": "timm:known", "options": {"weights": None}}
    torch.save(Body().state_dict(), tmp_path / "w.pth")
    assert create_network("timm:known", 6, (32, 32, 3), weights=tmp_path / "w.pth").adsh_weights.complete
    assert calls[-1] == ("known", False, 0)
    with pytest.raises(InputError, match="'timm:other' cannot be created .Unknown model .other"):
        create_network("timm:other", 6, (32, 32, 3))


def test_without_timm_the_command_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtraError, match="pip install timm"):
        create_network("timm:resnet18", 8, (32, 32, 3))


def test_a_real_network_of_timms_learns_where_timm_imports():
    try:
        import timm  # noqa: F401  # whether it imports is the question
    except Exception:
        pytest.skip("timm does not import here")
    network = create_network("timm:resnet18", 8, (32, 32, 3), weights=None, size=32).eval()
    assert network.features(torch.rand(2, 3, 32, 32)).shape == (2, network.feature_size)


def test_efficientnet_lite_leaves_out_features_and_blocks_in_training_alone():
    images = torch.rand(6, 3, 32, 32)

    def create(**options):
        torch.manual_seed(0)
        return create_network("efficientnet_lite0", 8, (32, 32, 3), weights=None, size=32, **options)

    plain = create().eval()(images)
    for options in ({"dropout": 0.5}, {"skip": 0.9}):
        network = create(**options)
        assert torch.equal(network.eval()(images), plain)
        for layer in network.modules():
            layer.training = not isinstance(layer, torch.nn.BatchNorm2d)  # what differs is not the batch's statistics
        first, second = network(images), network(images)
        assert not torch.allclose(first, second)
    features = create(dropout=0.5)
    features.training = True
    assert (features.body(images) == 0).float().mean() > (create().eval().body(images) == 0).float().mean() + 0.2
    for name in ("dropout", "skip"):
        with pytest.raises(InputError, match=f"{name}=1: give a probability"):
            create(**{name: 1})
