"""Every model has every member of `HashModel`, so that nothing outside models/ and methods/ checks its class."""

from __future__ import annotations

import numpy as np
import pytest

import adsh
from adsh.errors import InputError
from adsh.hamming.bits import pack
from adsh.methods import METHODS, create
from adsh.models.protocol import HashModel, ItemEncoder

MEMBERS = sorted(
    {
        name
        for each in (HashModel, ItemEncoder)
        for name in (*vars(each), *each.__annotations__)
        if not name.startswith("_")
    }
)
SMALL = {"fasth": {"hash_function": "ridge"}, "lfh": {"rounds": 2}, "lfh_decay": {"rounds": 2}, "sdh": {"anchors": 20}}


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 3
    return (labels[:, None] + rng.standard_normal((60, 12))).astype(np.float32), labels


def fitted(name: str, data: tuple[np.ndarray, np.ndarray]) -> HashModel:
    if name == "adsh":
        model: HashModel = adsh.ADSH(8, network="linear", outer=1, inner=1, samples=30, device="cpu", progress=False)
    else:
        model = create(name, bits=8, progress=False, **SMALL.get(name.removesuffix("_d"), {}))
        if model.keeps_checkpoints:
            model.set_params(network="linear", outer=1, inner=1, samples=30, device="cpu")
    return model.fit(*data)


@pytest.mark.parametrize("name", ["adsh", *METHODS])
def test_a_fitted_model_has_every_member(name, data):
    model = fitted(name, data)
    assert [member for member in MEMBERS if not hasattr(model, member)] == []
    codes, features = model.encode_with_features(data[0])
    assert np.array_equal(codes, model.encode(data[0]))
    assert features is None or len(features) == len(codes)
    assert np.array_equal(pack(model.outputs(data[0])), codes)
    assert np.array_equal(model.outputs_with_features(data[0])[0], model.outputs(data[0]))
    assert model.num_distinct_codes == len(np.unique(model.database_codes_, axis=0))
    assert model.training_seconds > 0
    assert (model.network_ is None) == (model.network_name is None) == (model.hash_ is not None)
    assert model.frozen_features is None
    if model.has_bounded_outputs:
        assert np.abs(model.outputs(data[0])).max() <= 1


@pytest.mark.parametrize("name", ["adsh", "dpsh", "itq"])
def test_only_a_model_with_codes_for_labels_knows_labels(name, data):
    model = fitted(name, data)
    assert model.codes_labels == (name == "adsh") == bool(model.known_labels)
    if model.codes_labels:
        assert model.code_for([0, 1, 2]).shape == (3, 1)
    else:
        with pytest.raises(InputError, match="no codes for labels"):
            model.code_for([0])


@pytest.mark.parametrize("name", ["sdh", "dsh"])
def test_whole_is_the_older_name_of_use_full_database(name):
    for option in ("whole", "use_full_database"):
        model = create(name, bits=8, **{option: True})
        assert model.whole is model.use_full_database is True
    model.whole = False
    assert model.use_full_database is False


def test_a_deep_method_has_one_parameter_under_its_two_names(data):
    model = create("dsh_d", bits=8)
    assert model.get_params()["whole"] is True
    assert "use_full_database" not in model.get_params()
    assert model.set_params(use_full_database=False).get_params()["whole"] is False


def test_the_older_names_of_the_methods_with_features_still_work(data):
    model = fitted("adsh", data)
    for older, newer in (
        (model.codes_and_features, model.encode_with_features),
        (model.outputs_and_features, model.outputs_with_features),
    ):
        for before, now in zip(older(data[0]), newer(data[0]), strict=True):
            assert np.array_equal(before, now)
