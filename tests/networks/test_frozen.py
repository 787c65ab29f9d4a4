"""A network left as it is, with an mlp trained on its features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import adsh
from adsh.errors import InputError
from adsh.networks import create_network, input_size
from adsh.train.feature_cache import features_once

NAME = "frozen:efficientnet_lite0"
OPTIONS = {"size": 32, "weights": None, "hidden": 16}


@pytest.fixture(scope="module")
def photos():
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    images = rng.integers(0, 100, (40, 12, 12, 3)) + 150 * labels[:, None, None, None]
    return images.astype(np.uint8), labels


@pytest.fixture
def model(photos):
    settings = {"network": NAME, "network_options": OPTIONS, "outer": 6, "device": "cpu"}
    return adsh.ADSH(8, **settings).fit(*photos)


def test_only_the_top_is_trained_and_the_features_are_seen_once(photos, model):
    torch.manual_seed(0)  # as fit starts
    fresh = create_network(NAME, 8, (12, 12, 3), **OPTIONS)
    assert all(
        torch.equal(before, after)
        for (name, before), after in zip(
            fresh.backbone.state_dict().items(), model.network_.backbone.state_dict().values(), strict=True
        )
    )
    assert not torch.equal(fresh.top.head.weight, model.network_.top.head.weight)
    assert model.features_.shape == (40, 1280)
    images = torch.from_numpy(photos[0]).permute(0, 3, 1, 2).float() / 255
    with torch.inference_mode():
        seen = model.network_.eval().features(images)
    assert np.allclose(seen, model.features_, atol=1e-5)
    assert np.array_equal(model.encode_database(photos[0]), model.encode(photos[0]))


def test_a_saved_model_gives_the_same_codes(photos, model, tmp_path):
    model.save(tmp_path / "m")
    loaded = adsh.load(tmp_path / "m")
    assert np.array_equal(loaded.encode(photos[0]), model.encode(photos[0]))
    assert np.array_equal(loaded.encode_database(photos[0]), model.encode(photos[0]))
    codes, features = loaded.encode_with_features(photos[0])
    assert np.array_equal(codes, model.encode(photos[0]))
    assert np.allclose(features, model.features_, atol=1e-5)


def test_training_mode_leaves_the_statistics_of_the_backbone_alone():
    network = create_network(NAME, 8, (12, 12, 3), **OPTIONS).train()
    before = {name: tensor.clone() for name, tensor in network.backbone.state_dict().items()}
    network(torch.rand(4, 3, 12, 12))
    assert all(torch.equal(before[name], tensor) for name, tensor in network.backbone.state_dict().items())
    assert not any(parameter.requires_grad for parameter in network.backbone.parameters())


def test_features_kept_in_a_file_are_continued_and_those_of_others_computed_again(photos, tmp_path):
    from adsh.data import as_items
    from adsh.utils.device import choose_device

    network, choice = create_network(NAME, 8, (12, 12, 3), **OPTIONS), choose_device("cpu")
    path, data = tmp_path / "f.npy", {"items": "a"}
    whole = features_once(network, as_items(photos[0]), choice)

    def stop(done, total):
        if done < total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        features_once(network, as_items(photos[0]), choice, path=path, data=data, on_done=stop)
    assert not path.exists()
    seen: list[int] = []
    items = as_items(photos[0])
    kept = features_once(network, items, choice, path=path, data=data, on_done=lambda done, _: seen.append(done))
    assert seen[-1] == 40
    assert np.array_equal(kept, whole)
    other = features_once(network, as_items(photos[0][::-1].copy()), choice, path=path, data={"items": "b"})
    assert np.allclose(other, whole[::-1], atol=1e-6)


def test_what_cannot_be_frozen_is_refused():
    assert input_size(NAME) == 224
    with pytest.raises(InputError, match="mlp takes features"):
        create_network("frozen:mlp", 8, (12, 12, 3))
    with pytest.raises(InputError, match="choose one of"):
        create_network("frozen:nothing", 8, (12, 12, 3))


def test_resuming_gives_the_same_codes_and_weights(photos, tmp_path):
    settings = {"network": NAME, "network_options": OPTIONS, "device": "cpu", "outer": 4}
    straight = adsh.ADSH(8, **settings).fit(*photos)

    def stop(record):
        if record["outer"] == 2:
            raise KeyboardInterrupt

    kept = {"checkpoints": tmp_path / "c", "features": tmp_path / "f.npy"}
    with pytest.raises(KeyboardInterrupt):
        adsh.ADSH(8, **settings).fit(*photos, callback=stop, **kept)
    resumed = adsh.ADSH(8, **settings).fit(*photos, resume=True, **kept)
    assert len(resumed.history_) == 4
    for one, other in zip(straight.network_.state_dict().values(), resumed.network_.state_dict().values(), strict=True):
        assert torch.equal(one, other)
    assert np.array_equal(straight.database_codes_, resumed.database_codes_)


def test_fitted_anew_nothing_is_left_of_the_features_before(photos, model, tmp_path):
    other = photos[0][:30][::-1].copy()
    model.set_params(network="tiny", network_options=None)
    model.fit(other, photos[1][:30])
    assert not hasattr(model, "features_")
    assert np.array_equal(model.encode_database(other), model.encode(other))


def test_a_place_that_cannot_be_saved_to_is_reported_before_the_features_are_seen(photos, tmp_path):
    (tmp_path / "file").write_text("")
    seen: list[int] = []

    class RecordingCallback:
        def __call__(self, record):
            pass

        def features(self, done, total):
            seen.append(done)

    settings = {"network": NAME, "network_options": OPTIONS, "outer": 1, "device": "cpu"}
    with pytest.raises(adsh.AdshError, match="is a file"):
        adsh.ADSH(8, **settings).fit(*photos, save_to=tmp_path / "file", callback=RecordingCallback())
    assert seen == []


def test_features_of_images_seen_otherwise_are_computed_again(tmp_path):
    """The weights are the same, but one preset takes the centre of an image."""
    images = np.random.default_rng(0).integers(0, 256, (30, 32, 32, 3), dtype=np.uint8)
    seen = []
    for preset in ("paper", "authors-pytorch", "paper"):
        model = adsh.ADSH(8, network="frozen:dsh_net", preset=preset, outer=1, progress=False)
        model.fit(images, np.arange(30) % 3, features=tmp_path / "features.npy")
        seen.append(np.array(model.features_))
    assert not np.allclose(seen[0], seen[1])
    assert np.array_equal(seen[0], seen[2])
