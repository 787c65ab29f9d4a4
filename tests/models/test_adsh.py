import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.base import clone

import adsh
from adsh.errors import InputError
from adsh.hamming.bits import unpack

from ..data.test_items import LazyBatches
from ..reference import paper


def expected_map(query_codes, database_codes, query_labels, database_labels, bits):
    return adsh.metrics.mean_average_precision(query_codes, database_codes, query_labels, database_labels, bits=bits)


def quick(bits=12, **values):
    return adsh.ADSH(bits, **{"network": "linear", "outer": 4, "samples": 100, "device": "cpu"} | values)


def scores(model, digits, database=None, labels=None):
    """MAP on the learned codes, and with the database coded by the network."""
    database = digits.database if database is None else database
    labels = digits.labels if labels is None else labels
    query_codes = model.encode(digits.queries)
    return [
        expected_map(query_codes, codes, digits.query_labels, labels, model.bits)
        for codes in (model.database_codes_, model.encode(database))
    ]


# What it is for ---------------------------------------------------------------------------------------


def test_digits_are_found_by_learned_codes_and_by_network_codes(digits):
    model = adsh.ADSH(12, network="mlp", outer=20).fit(digits.database, digits.labels)
    learned, network = scores(model, digits)
    assert learned >= 0.97
    assert network >= 0.93
    assert model.database_codes_.shape == (1597, 2)
    assert len(model.code_table_.rows) < 40
    assert len(model.history_) == 20


@pytest.mark.parametrize("sparse", [False, True])
def test_digits_are_found_from_pairwise_similarities_alone(digits, sparse):
    similar = digits.labels[:, None] == digits.labels
    S = scipy.sparse.csr_array(similar.astype(np.int8)) if sparse else np.where(similar, 1, -1).astype(np.int8)
    model = adsh.ADSH(12, network="mlp", outer=20).fit(digits.database, similarity=S)
    assert scores(model, digits)[0] >= 0.95
    with pytest.raises(InputError, match="similarity matrix"):
        model.code_for([1])


def test_digits_are_found_with_400_separate_queries(digits):
    model = adsh.ADSH(12, network="mlp", outer=20).fit(
        digits.database[400:],
        digits.labels[400:],
        queries=digits.database[:400],
        query_labels=digits.labels[:400],
    )
    learned, _ = scores(model, digits, digits.database[400:], digits.labels[400:])
    assert learned >= 0.92


def test_a_similarity_between_queries_and_database_equals_their_labels(digits):
    """The same problem given as S and as labels has the same sweeps, and so the same codes."""
    Y, X = digits.database[400:700], digits.database[:100]
    LY, LX = digits.labels[400:700], digits.labels[:100]
    by_labels = quick().fit(Y, LY, queries=X, query_labels=LX)
    by_pairs = quick().fit(Y, similarity=np.where(LX[:, None] == LY, 1, -1), queries=X)
    assert np.array_equal(by_labels.database_codes_, by_pairs.database_codes_)


def test_images_go_through_tiny(digits):
    images = np.repeat((digits.database.reshape(-1, 8, 8, 1) * 15).astype(np.uint8), 3, axis=3)
    model = adsh.ADSH(12, network="tiny", outer=20).fit(images[:500], digits.labels[:500])
    query_codes = model.encode(images[500:600])
    assert expected_map(query_codes, model.database_codes_, digits.labels[500:600], digits.labels[:500], 12) > 0.8


@pytest.mark.parametrize("preset", ["paper", "authors-matlab", "authors-pytorch", "fast"])
def test_every_preset_lowers_its_objective(blobs, preset):
    points, labels = blobs
    model = quick(preset=preset, outer=5, lr=None if preset == "fast" else 0.05).fit(points, labels)
    assert model.history_[-1]["loss"] < model.history_[0]["loss"]
    assert model.recipe_.outer == 5


# The interface ----------------------------------------------------------------------------------------


def test_codes_are_packed_signs_of_the_outputs(blobs):
    points, labels = blobs
    model = quick(bits=11).fit(points, labels)
    outputs = model.outputs(points)
    assert np.abs(outputs).max() <= 1
    assert np.array_equal(unpack(model.encode(points), 11), np.where(outputs >= 0, 1, -1))
    assert np.array_equal(model.code_table_.dense(), unpack(model.database_codes_, 11))
    assert not (model.encode(points)[:, 1] & 0b00011111).any()  # padding


@pytest.mark.parametrize("bits", [1, 7, 65, 1024])
def test_any_code_length_works(blobs, bits):
    points, labels = blobs
    model = quick(bits=bits, outer=2).fit(points, labels)
    assert model.database_codes_.shape == (300, (bits + 7) // 8)


def test_the_same_seed_gives_the_same_bytes_and_another_gives_others(blobs):
    points, labels = blobs
    a, b, c = (quick(network="mlp", seed=seed).fit(points, labels) for seed in (5, 5, 6))
    assert a.outputs(points).tobytes() == b.outputs(points).tobytes()
    assert np.array_equal(a.database_codes_, b.database_codes_)
    assert a.outputs(points).tobytes() != c.outputs(points).tobytes()


def test_fit_leaves_the_random_state_and_the_threads_as_they_were(blobs):
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    threads = torch.get_num_threads()
    quick(outer=1).fit(*blobs)
    assert torch.equal(torch.rand(4), expected)
    assert torch.get_num_threads() == threads


def test_the_callback_hears_of_every_outer_iteration(blobs):
    records = []
    model = quick().fit(*blobs, callback=records.append)
    assert records == model.history_
    assert [record["outer"] for record in records] == [1, 2, 3, 4]


def test_clone_and_params_follow_scikit_learn(blobs):
    model = quick(network=torch.nn.Linear(8, 12), gamma=3.0)
    twin = clone(model)
    assert twin is not model
    assert twin.get_params()["gamma"] == 3.0
    assert twin.network is not model.network
    assert model.set_params(gamma=4.0, bits=16).get_params()["bits"] == 16
    with pytest.raises(InputError, match="'gama'.*gamma"):
        model.set_params(gama=1)
    assert clone(quick().fit(*blobs)).get_params() == quick().get_params()
    assert repr(adsh.ADSH(12, gamma=3.0)) == "ADSH(12, gamma=3.0)"
    assert repr(adsh.ADSH(12, preset="".join(["mod", "ern"]))) == "ADSH(12)"


def test_a_module_of_the_users_own_is_trained_as_a_copy(blobs):
    module = torch.nn.Linear(8, 12)
    before = module.weight.detach().clone()
    model = quick(network=module).fit(*blobs)
    assert torch.equal(module.weight, before)
    assert not torch.equal(model.network_.weight, before)


def test_the_device_is_chosen_and_the_reason_said(blobs, capsys):
    model = quick(device="auto", outer=1, progress=True).fit(*blobs)
    assert model.device_.reason
    said = capsys.readouterr().err
    assert str(model.device_) in said
    assert "iteration 1/1" in said
    assert "\r" not in said  # nothing animated where it is no terminal
    quick(outer=1).fit(*blobs)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("n", [300_000, pytest.param(3_000_000, marks=pytest.mark.slow)])
def test_a_lazy_database_is_read_only_where_sampled(blobs, n):
    points, _ = blobs
    source = LazyBatches(n, lambda i: points[i % 300])
    model = quick().fit(source, (np.arange(n) % 3).astype(np.uint8))
    assert len(set(source.read)) < 2 * 4096 + 4 * 100 + 3 * 100 + 2  # to standardise, fit votes to, train and keep
    assert len(model.database_codes_) == n
    of_class = [len(np.unique(model.database_codes_[k::3], axis=0)) for k in range(3)]
    assert max(of_class) <= 1 + 4 * 100


# Labels that come later, or never ---------------------------------------------------------------------


def test_points_without_a_label_are_coded_by_the_network(digits):
    labels = digits.labels.copy()
    labels[::2] = -1
    model = adsh.ADSH(12, outer=10).fit(digits.database, labels)
    codes = model.database_codes_
    assert np.array_equal(codes[::2], model.encode(digits.database[::2]))
    alone = adsh.ADSH(12, outer=10).fit(digits.database[1::2], digits.labels[1::2])
    assert len(model.code_table_.rows) > len(alone.code_table_.rows)
    query_codes = model.encode(digits.queries)
    for part in (slice(0, None, 2), slice(1, None, 2)):
        assert expected_map(query_codes, codes[part], digits.query_labels, digits.labels[part], 12) > 0.85


def test_points_without_a_label_may_be_learned_as_similar_to_nothing(blobs):
    points, labels = blobs
    labels = labels.copy()
    labels[labels == 2] = -1
    model = quick(unlabelled="dissimilar").fit(points, labels)
    assert (model.code_table_.label_set >= 0).all()
    with pytest.raises(InputError, match="unlabelled='nothing'"):
        quick(unlabelled="nothing").fit(points, labels)


def test_code_for_a_known_label_set_is_its_commonest_code(digits):
    model = adsh.ADSH(16, outer=5).fit(digits.database, digits.labels)
    codes = model.code_for([7, 3, 7])
    assert codes.shape == (3, 2)
    for code, label in zip(codes, (7, 3, 7), strict=True):
        values, counts = np.unique(model.database_codes_[digits.labels == label], axis=0, return_counts=True)
        assert np.array_equal(code, values[counts.argmax()])


def test_code_for_a_new_label_set_is_where_eq_9_comes_to_rest(blobs):
    points, classes = blobs
    hot = np.zeros((300, 4), dtype=int)
    hot[np.arange(300), classes] = 1
    hot[classes == 1, 3] = 1
    model = quick(bits=10).fit(points, hot)
    last = model._new_labels.last
    new = np.array([[1, 0, 0, 1]])  # a set nobody in the database has
    code = unpack(model.code_for(new), 10).astype(float)

    sampled = model._new_labels.queries
    tags = np.array([[t in sampled.names_of(k) for t in range(4)] for k in last.label_sets], dtype=int)
    similar = (tags @ new.T > 0)[:, 0]
    S_U = np.where(similar, 1.0, -last.ratio) @ last.sums  # the sum over the sample of S_i u_i
    for k in range(10):
        others = [b for b in range(10) if b != k]
        z = 2 * code[0, others] @ last.gram[others, k] - 2 * 10 * S_U[k]
        assert code[0, k] == -np.sign(z)
    with pytest.raises(InputError, match="item 1 has no label.*encode"):
        model.code_for(np.array([[1, 0, 0, 0], [0, 0, 0, 0]]))


def test_the_loss_in_the_history_is_the_objective_of_the_paper(blobs):
    points, labels = blobs
    seen = {}

    class Watched(torch.nn.Linear):
        def forward(self, x):
            z = super().forward(x)
            if self.training:
                seen["U"] = torch.tanh(z).detach().double().numpy()
            return z

    model = quick(bits=6, network=Watched(8, 6), samples=300, batch_size=300, inner=1, outer=3).fit(points, labels)
    order = np.random.default_rng([0, 2])
    order.integers(1 << 62)
    omega = order.choice(300, 300, replace=False)[order.permutation(300)]
    S = paper.weighted(np.where(labels[omega][:, None] == labels, 1.0, -1.0))
    J = paper.objective(seen["U"], model.code_table_.dense(), S, omega, 200.0)
    assert model.history_[-1]["loss"] == pytest.approx(J / 300**2, rel=1e-6)


def test_the_recipe_holds_the_values_used(blobs):
    points, labels = blobs
    assert adsh.ADSH(8, outer=1).fit(points, labels).recipe_.samples == 300
    model = quick(outer=1, gamma=5.0, samples=None)
    recipe = model.fit(points, labels, queries=points[:40], query_labels=labels[:40]).recipe_
    assert (recipe.samples, recipe.gamma) == (40, 0.0)


def test_parameters_changed_after_fit_do_not_change_the_model(blobs, tmp_path):
    points, labels = blobs
    model = quick(bits=12).fit(points, labels)
    before = model.encode(points)
    model.set_params(bits=24, seed=9)
    assert np.array_equal(model.encode(points), before)
    model.save(tmp_path / "m")
    assert adsh.load(tmp_path / "m").bits == 12


def test_rows_of_a_fit_on_similarities_are_its_distinct_codes(blobs):
    points, labels = blobs
    model = quick().fit(points, similarity=np.where(labels[:, None] == labels, 1, -1))
    assert len(model.code_table_.rows) == len(np.unique(model.database_codes_, axis=0))
    assert model.code_table_.rows.count.sum() == 300


def test_the_last_layer_starts_as_the_preset_says(blobs):
    """authors-matlab draws it from normal(0, .01): with a rate of 0 it is still that after training."""
    model = quick(bits=64, preset="authors-matlab", lr=1e-30, outer=1).fit(*blobs)
    assert float(model.network_.head.weight.detach().std()) == pytest.approx(0.01, rel=0.2)
    assert float(model.network_.head.bias.detach().std()) == pytest.approx(0.01, rel=0.3)


def test_features_are_standardised_before_training(blobs):
    points, labels = blobs
    model = quick(outer=30).fit(points * 1000 + 5e4, labels)
    assert model.network_.network.standardize.mean.abs().min() > 1e4
    assert np.array_equal(model.database_codes_, quick(outer=30).fit(points * 1000 + 5e4, labels).database_codes_)
    assert expected_map(model.encode(points * 1000 + 5e4), model.database_codes_, labels, labels, 12) > 0.9


def test_a_softer_target_reaches_the_table():
    rng = np.random.default_rng(0)
    labels = rng.random((60, 4)) < 0.4
    labels[:, 0] |= ~labels.any(axis=1)
    features = labels @ rng.normal(size=(4, 8)) + 0.1 * rng.normal(size=(60, 8))
    losses = {}
    for soften in (0.0, 0.25, None):
        recipe = {"outer": 2, "head": "bits"} | ({} if soften is None else {"soften": soften})
        model = adsh.ADSH(48, network="linear", recipe=recipe, device="cpu").fit(features, labels)
        losses[soften] = model.history_[-1]["loss"]
    assert losses[None] == losses[0.25] < losses[0.0]
