"""Many and unequal classes: `modern` takes a posterior head by itself, and everything else works with it."""

import json
import shutil

import numpy as np
import pytest
import torch

import adsh
from adsh.errors import InputError
from adsh.learn.head_choice import ClassSizes, choose_head

BITS = 12
SIZES = [150] * 4 + [12] * 36


def clouds(sizes, dimensions=16, seed=0):
    """Classes of these sizes, not well separated."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    X = 2.5 * rng.standard_normal((len(sizes), dimensions))[labels] + rng.standard_normal((len(labels), dimensions))
    return X.astype(np.float32), labels


def quick(bits=BITS, **values):
    given = {"network": "mlp", "network_options": {"hidden": 64}, "outer": 30, "device": "cpu", "progress": False}
    return adsh.ADSH(bits, **given | values)


@pytest.fixture(scope="module")
def many():
    return clouds(SIZES)


@pytest.fixture(scope="module")
def model(many):
    return quick().fit(*many)


def codes_of_classes(model, labels):
    return {label: set(map(bytes, model.database_codes_[labels == label])) for label in np.unique(labels)}


def test_more_classes_than_bits_keep_codes_of_their_own(model, many):
    X, labels = many
    assert model.recipe_.head == "posterior"
    codes = codes_of_classes(model, labels)
    assert all(len(found) == 1 for found in codes.values())
    assert len(set().union(*codes.values())) == 40
    fresh, truth = clouds(SIZES)
    queries = fresh + 0.3 * np.random.default_rng(1).standard_normal(fresh.shape).astype(np.float32)
    found = adsh.metrics.mean_average_precision(model.encode(queries), model.database_codes_, truth, labels, bits=BITS)
    plain = quick(recipe={"head": "bits"}).fit(X, labels)
    before = adsh.metrics.mean_average_precision(plain.encode(queries), plain.database_codes_, truth, labels, bits=BITS)
    assert found > 0.9
    assert found > before + 0.1


def test_unequal_classes_keep_codes_of_their_own():
    X, labels = clouds([350, 20, 20, 20])
    model = quick(48).fit(X, labels)
    assert model.recipe_.head == "posterior"
    assert model.num_distinct_codes == 4
    fresh, truth = clouds([5] * 4)  # the same centres
    distances = np.bitwise_count(model.encode(fresh)[:, None] ^ model.code_for(np.arange(4))).sum(axis=2)
    assert np.mean(distances.argmin(axis=1) == truth) > 0.9


@pytest.mark.parametrize(
    ("sizes", "preset", "head"),
    [
        ([30] * 4, "modern", "posterior"),
        ([30] * 4, "paper", "bits"),
        ([30] * 13, "modern", "posterior"),
        ([100, 10], "fast", "posterior"),
        ([100, 10], "paper", "bits"),
        ([30] * 13, "authors-pytorch", "bits"),
    ],
)
def test_the_presets_as_published_stay_as_published(sizes, preset, head):
    assert quick(preset=preset, outer=1, samples=50).fit(*clouds(sizes)).recipe_.head == head


def test_the_choice_names_its_reason():
    assert choose_head(48, ClassSizes(100, 31, 800), "mlp") == ("posterior", "100 classes are more than 48 bits")
    assert choose_head(48, ClassSizes(4, 20, 350), "tiny")[1] == "the largest class has 350 items and the smallest 20"
    assert choose_head(12, ClassSizes(10, 100, 100), "efficientnet_lite0")[0] == "bits"
    assert choose_head(12, ClassSizes(10, 100, 100), "mlp", ["lr", "soften"]) == ("bits", "target_exponent was given")
    for network in ("mlp", "linear", "frozen:efficientnet_lite0"):
        assert choose_head(12, ClassSizes(10, 100, 100), network)[0] == "posterior"


def test_a_head_that_cannot_be_had_is_refused():
    X, labels = clouds([20] * 3)
    with pytest.raises(InputError, match="needs labels"):
        quick(recipe={"head": "posterior"}).fit(X, similarity=np.where(labels[:, None] == labels, 1, -1))
    with pytest.raises(InputError, match="head='lookup': give one of bits, posterior"):
        quick(recipe={"head": "lookup"}).fit(X, labels)


def test_a_users_own_module_learns_bits():
    X, labels = clouds([10] * 20)
    model = quick(network=torch.nn.Linear(16, BITS), network_options=None, outer=1).fit(X, labels)
    assert model.recipe_.head == "bits"


def test_a_saved_model_gives_the_same_codes(model, many, tmp_path):
    X, labels = many
    model.save(tmp_path / "model")
    loaded = adsh.load(tmp_path / "model")
    assert loaded.recipe_.head == "posterior"
    assert np.array_equal(loaded.encode(X), model.encode(X))
    assert np.array_equal(loaded.outputs(X), model.outputs(X))
    assert np.array_equal(loaded.database_codes_, model.database_codes_)
    assert np.array_equal(loaded.code_for(labels), model.database_codes_)
    assert np.array_equal(loaded.code_for([[3, 4]]), model.code_for([[3, 4]]))
    assert json.loads((tmp_path / "model/config.json").read_text())["recipe"]["head"] == "posterior"


def test_outputs_are_means_of_codes_and_rank_asymmetrically(model, many, tmp_path):
    X, labels = many
    outputs = model.outputs(X[:50])
    assert np.abs(outputs).max() <= 1
    with adsh.open_index(tmp_path / "index", bits=BITS) as index:
        index.add([str(i) for i in range(len(X))], model.database_codes_)
        found = index.search(outputs, k=5, ranking="asymmetric")
    right = [labels[int(key)] == labels[i] for i, matches in enumerate(found) for key in matches.keys]
    assert np.mean(right) > 0.9


def test_a_stopped_fit_resumes_to_the_same_bytes(model, many, tmp_path):
    class Stop(Exception):
        pass

    def stop(record):
        if record["outer"] == 4:
            raise Stop

    with pytest.raises(Stop):
        quick().fit(*many, callback=stop, checkpoints=tmp_path / "kept")
    resumed = quick().fit(*many, checkpoints=tmp_path / "kept", resume=True)
    for name, tensor in model.network_.state_dict().items():
        assert torch.equal(tensor, resumed.network_.state_dict()[name]), name
    assert np.array_equal(resumed.database_codes_, model.database_codes_)
    shutil.rmtree(tmp_path / "kept")


def test_points_without_a_label_are_encoded_by_the_network(many):
    X, labels = many
    partly = np.where(np.arange(len(labels)) % 10 == 0, -1, labels)
    model = quick().fit(X, partly)
    assert np.array_equal(model.database_codes_[::10], model.encode(X[::10]))
    assert np.array_equal(model.code_for(partly[partly >= 0]), model.database_codes_[partly >= 0])


def test_a_frozen_network_trains_the_head_alone():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(14), 6)
    images = (rng.integers(0, 60, (84, 32, 32, 3)) + 13 * labels[:, None, None, None]).astype(np.uint8)
    options = {"hidden": 16, "weights": None}
    model = quick(network="frozen:dsh_net", network_options=options, outer=2).fit(images, labels)
    assert model.recipe_.head == "posterior"
    assert len(set(map(bytes, model.database_codes_))) == 14
    assert np.array_equal(model.encode_database(images), model.encode(images))


def test_a_few_classes_get_votes_that_grade_the_items_between_them():
    X, labels = clouds([150] * 5, dimensions=4)
    model = quick(24).fit(X, labels)
    assert model.num_distinct_codes == 5
    votes = model.network_.codes.numpy()
    assert np.array_equal(np.unpackbits(model.code_for(np.arange(5)), axis=1)[:, :24] == 1, votes > 0)
    fresh, truth = clouds([150] * 5, dimensions=4)
    fresh += np.random.default_rng(1).standard_normal(fresh.shape).astype(np.float32)

    def found():
        codes = model.encode(fresh)
        return adsh.metrics.Ranking(codes, codes, truth, truth, bits=24, leave_one_out=True).average_precisions().mean()

    graded = found()
    model.network_.codes.copy_(torch.sign(model.network_.codes))  # each class with the same weight
    assert graded > found() + 0.005


LABEL_SETS = [[0], [1], [2], [3], [4], [5], [0, 1], [1, 2], [2, 3], [0, 4], [1, 3, 5]]
TAUGHT = LABEL_SETS[:8] + LABEL_SETS[9:]  # the others have no items in training


def several(count, sets=LABEL_SETS, seed=0):
    """Items between the centres of their labels."""
    centres = 2.5 * np.random.default_rng(0).standard_normal((6, 12))
    rng = np.random.default_rng(seed)
    labels = [sets[i] for i in rng.integers(len(sets), size=count)]
    X = np.stack([centres[names].mean(axis=0) for names in labels]) + 1.5 * rng.standard_normal((count, 12))
    return X.astype(np.float32), labels


@pytest.fixture(scope="module")
def labelled_twice():
    return quick(outer=10).fit(*several(900, TAUGHT))


def test_items_with_several_labels_get_a_posterior_of_their_label_sets(labelled_twice):
    X, labels = several(900, TAUGHT)
    queries, truth = several(300, TAUGHT, seed=1)
    assert labelled_twice.recipe_.head == "posterior"
    found = adsh.metrics.mean_average_precision(
        labelled_twice.encode(queries), labelled_twice.database_codes_, truth, labels, bits=BITS
    )
    plain = quick(outer=10, recipe={"head": "bits"}).fit(X, labels)
    before = adsh.metrics.mean_average_precision(plain.encode(queries), plain.database_codes_, truth, labels, bits=BITS)
    assert found > 0.9
    assert found > before - 0.01  # in a few iterations; on features of photographs it is far ahead


def test_a_new_label_set_gets_a_code_near_its_labels(labelled_twice):
    assert np.array_equal(labelled_twice.code_for(several(900, TAUGHT)[1]), labelled_twice.database_codes_)
    (new,) = labelled_twice.code_for([LABEL_SETS[8]])
    distances = {
        tuple(names): int(np.bitwise_count(code ^ new).sum())
        for names, code in zip(TAUGHT, labelled_twice.code_for(TAUGHT), strict=True)
    }
    related = [distance for names, distance in distances.items() if {*names} & {*LABEL_SETS[8]}]
    others = [distance for names, distance in distances.items() if not {*names} & {*LABEL_SETS[8]}]
    assert np.mean(related) < np.mean(others) - 1


def test_a_model_of_several_labels_is_saved_and_resumed(labelled_twice, tmp_path):
    X, labels = several(900, TAUGHT)
    labelled_twice.save(tmp_path / "model")
    loaded = adsh.load(tmp_path / "model")
    assert np.array_equal(loaded.encode(X), labelled_twice.encode(X))
    assert np.array_equal(loaded.code_for(LABEL_SETS), labelled_twice.code_for(LABEL_SETS))

    class Stop(Exception):
        pass

    def stop(record):
        if record["outer"] == 4:
            raise Stop

    with pytest.raises(Stop):
        quick(outer=10).fit(X, labels, callback=stop, checkpoints=tmp_path / "kept")
    resumed = quick(outer=10).fit(X, labels, checkpoints=tmp_path / "kept", resume=True)
    for name, tensor in labelled_twice.network_.state_dict().items():
        assert torch.equal(tensor, resumed.network_.state_dict()[name]), name
    assert np.array_equal(resumed.database_codes_, labelled_twice.database_codes_)


def test_several_labels_on_a_frozen_network_with_items_that_have_none():
    rng = np.random.default_rng(0)
    labels = [[i % 5, (i + 1) % 5] if i % 3 else [i % 5] for i in range(90)]
    images = (rng.integers(0, 60, (90, 32, 32, 3)) + 30 * (np.arange(90) % 5)[:, None, None, None]).astype(np.uint8)
    labels[7] = []
    options = {"hidden": 16, "weights": None}
    model = quick(network="frozen:dsh_net", network_options=options, outer=2).fit(images, labels)
    assert model.recipe_.head == "posterior"
    assert np.array_equal(model.database_codes_[7], model.encode(images[7:8])[0])


def test_images_and_very_many_label_sets_keep_bits_of_their_own():
    assert choose_head(12, ClassSizes(500, 1, 90, several=True), "mlp")[0] == "posterior"
    assert choose_head(12, ClassSizes(500, 1, 90, several=True), "mlp", ["gamma"]) == ("bits", "gamma was given")
    for sizes, network in ((ClassSizes(500, 1, 90, several=True), "tiny"), (ClassSizes(5000, 1, 9, True), "mlp")):
        head, why = choose_head(12, sizes, network)
        assert head == "bits"
        assert why == f"items have several labels, {sizes.count:,} label sets in all"


def test_an_interrupted_run_keeps_the_head_that_it_began_with(tmp_path):
    class Stop(Exception):
        pass

    def stop(record):
        if record["outer"] == 2:
            raise Stop

    X, labels = clouds([30] * 4)
    with pytest.raises(Stop):
        quick(recipe={"head": "bits"}).fit(X, labels, callback=stop, checkpoints=tmp_path / "kept")
    resumed = quick().fit(X, labels, checkpoints=tmp_path / "kept", resume=True)
    assert resumed.recipe_.head == "bits"
