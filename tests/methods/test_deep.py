"""The deep methods: their losses by finite differences, and what they share with ADSH by use."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import adsh
from adsh import metrics
from adsh.errors import InputError
from adsh.hamming.bits import unpack
from adsh.labels import LabelSets
from adsh.methods import DEEP, create, dhn, dpsh, dsh
from adsh.methods.classifier import spread_codes
from adsh.methods.training_points import SimilarityBlocks

from .quality import mean_average_precision, similarity

PLAIN = [name for name in DEEP if not name.endswith("_d")]
SLOW = ("dpsh", "dpsh_d")  # plain SGD
HOT = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 0]])


def quick(name: str, **options):
    if name in SLOW:  # its own rate is for networks that were trained before
        options = {"lr": 0.5, **options}
    return create(name, bits=8, network_options={"hidden": 16}, **{"outer": 4, "progress": False, **options})


def check_gradient(loss, gradient, at: torch.Tensor) -> None:
    """Central differences of the loss in float64, entry by entry."""
    found = gradient(at)
    for i in range(at.shape[0]):
        for k in range(at.shape[1]):
            step = torch.zeros_like(at)
            step[i, k] = 1e-6
            expected = (loss(at + step) - loss(at - step)) / 2e-6
            assert float(found[i, k]) == pytest.approx(float(expected), rel=1e-5, abs=1e-8)


class TestLosses:
    similar = torch.as_tensor(similarity(HOT) > 0)
    outputs = 1.2 * torch.randn(6, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)

    def test_dsh(self):
        check_gradient(
            lambda u: dsh.loss(u, self.similar, 0.3), lambda u: dsh.gradient(u, self.similar, 0.3), self.outputs
        )
        D = ((self.outputs[:, None] - self.outputs) ** 2).sum(-1)
        assert (D[~self.similar] < 10).any()  # the margin 2c parts the pairs of this case
        assert (D[~self.similar] > 10).any()

    def test_dhn(self):
        check_gradient(
            lambda u: dhn.loss(u, self.similar, 0.3), lambda u: dhn.gradient(u, self.similar, 0.3), self.outputs
        )

    def test_dpsh(self):
        others = torch.randn(9, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        similar = torch.rand(6, 9, generator=torch.Generator().manual_seed(2)) < 0.4
        check_gradient(
            lambda u: dpsh.loss(u, others, similar, 0.2),
            lambda u: dpsh.gradient(u, others, similar, 0.2),
            self.outputs,
        )

    @pytest.mark.parametrize("name", DEEP)
    def test_the_gradient_that_trains_is_that_of_a_method_s_own_loss(self, name):
        method = create(name, bits=3)
        labels = LabelSets.of(HOT)
        table = method._table(labels, np.arange(6))
        u = torch.randn(6, table.bits, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
        if name in ("dpsh", "dpsh_d"):  # each pair is met from both its ends: half of the symmetric loss's gradient
            table.outputs = u.clone()
            pair = create(name, bits=3, eta=1e-12)
            found = pair._gradient(table, u.clone(), torch.arange(6))
            check_gradient(lambda v: pair._loss(table, v, torch.arange(6)) / 2, lambda _: found, u)
            return
        found = method._gradient(table, u, torch.arange(6))
        check_gradient(lambda v: method._loss(table, v, torch.arange(6)), lambda _: found, u)

    def test_long_codes_do_not_overflow(self):
        big = torch.full((2, 1024), 5.0)
        similar = torch.tensor([[True, False], [False, True]])
        for value in (dhn.loss(big, similar, 0.1), dpsh.loss(big, big, similar, 0.1), dsh.loss(big, similar, 0.1)):
            assert torch.isfinite(value)


@pytest.mark.parametrize("hot", [HOT, np.eye(3, dtype=int)[[0, 1, 2, 0, 1, 1]]])
def test_blocks_of_similarity_are_those_of_the_whole_matrix(hot):
    block = SimilarityBlocks(LabelSets.of(hot), torch.device("cpu"))
    rows, columns = torch.tensor([4, 0, 1]), torch.tensor([5, 2])
    truth = similarity(hot) > 0
    np.testing.assert_array_equal(block(rows), truth[rows])
    np.testing.assert_array_equal(block(rows, columns), truth[rows][:, columns])


@pytest.mark.parametrize("name", DEEP)
class TestEach:
    def test_the_objective_falls_from_start_to_end(self, name, blobs):
        outer = 40 if name in SLOW else 6
        losses = [record["loss"] for record in quick(name, outer=outer).fit(*blobs).history_]
        assert losses[-1] < 0.9 * losses[0]

    def test_it_goes_on_from_a_checkpoint_to_the_same_codes(self, name, blobs, tmp_path):
        whole = quick(name).fit(*blobs)

        class Stop(Exception):
            pass

        def stop(record):
            if record["outer"] == 3:
                raise Stop

        with pytest.raises(Stop):
            quick(name).fit(*blobs, checkpoints=tmp_path / "c", callback=stop)
        resumed = quick(name).fit(*blobs, checkpoints=tmp_path / "c", resume=True)
        np.testing.assert_array_equal(resumed.encode(blobs[0]), whole.encode(blobs[0]))
        np.testing.assert_array_equal(resumed.database_codes_, whole.database_codes_)
        assert [r["loss"] for r in resumed.history_] == [r["loss"] for r in whole.history_]
        with pytest.raises(InputError, match="other data: training items"):
            quick(name.removesuffix("_d")).fit(*blobs, train=np.arange(90), checkpoints=tmp_path / "c", resume=True)
        other = quick("dhn" if name.startswith("dsh") else "dsh")
        with pytest.raises(InputError, match="another configuration: method"):
            other.fit(*blobs, checkpoints=tmp_path / "c", resume=True)

    def test_it_is_saved_and_loaded(self, name, blobs, tmp_path):
        method = quick(name).fit(*blobs, save_to=tmp_path / "m")
        again = adsh.load(tmp_path / "m")
        assert type(again) is type(method)
        assert again.get_params() == method.get_params()
        assert repr(again) == repr(method)
        np.testing.assert_array_equal(again.encode(blobs[0]), method.encode(blobs[0]))
        np.testing.assert_array_equal(again.database_codes_, method.database_codes_)
        assert again.label_names_ == {"database": (0, 1, 2)}

    def test_the_plain_one_learns_from_the_training_items_alone_and_the_other_from_all(self, name, blobs):
        Y, labels = blobs
        Y = Y.astype(np.float32)
        train = np.arange(0, 300, 3)[:60]  # of class 0 only, so that whole or not shows
        if not name.endswith("_d"):
            with pytest.raises(InputError, match="no two different labels"):
                quick(name).fit(Y, labels, train=train)
            wrong = np.where(np.arange(300) < 200, labels, (labels + 1) % 3)
            first = quick(name).fit(Y, labels, train=np.arange(200))
            np.testing.assert_array_equal(first.encode(Y), quick(name).fit(Y, wrong, train=np.arange(200)).encode(Y))
        else:
            np.testing.assert_array_equal(
                quick(name).fit(Y, labels, train=train).database_codes_, quick(name).fit(Y, labels).database_codes_
            )

    def test_a_class_with_one_member_fits(self, name, blobs):
        Y, labels = blobs
        labels = labels.copy()
        labels[7] = 9
        assert len(quick(name, outer=1).fit(Y, labels).database_codes_) == 300

    def test_items_of_several_labels_fit(self, name, blobs):
        Y, labels = blobs
        hot = np.eye(4, dtype=int)[labels]
        hot[::5, 3] = 1
        method = quick(name).fit(Y, hot)
        assert method.database_codes_.shape == (300, 1)
        assert set(np.unique(unpack(method.database_codes_, 8))) <= {-1, 1}

    def test_items_without_a_label_are_coded_by_the_network(self, name, blobs):
        Y, labels = blobs
        labels = np.where(np.arange(300) < 100, -1, labels)
        method = quick(name).fit(Y, labels)
        np.testing.assert_array_equal(method.database_codes_[:100], method.encode(Y[:100]))


@pytest.mark.parametrize(
    ("name", "outer", "least"),
    [
        *((name, 5, 0.9) for name in PLAIN if name != "dpsh"),
        ("dpsh", 50, 0.9),
        *(pytest.param(name, 25, 0.9, marks=pytest.mark.slow) for name in PLAIN if name != "dpsh"),
    ],
)
def test_digits(digits, name, outer, least):
    rate = {"lr": 0.5} if name == "dpsh" else {}
    method = create(name, bits=12, outer=outer, progress=False, **rate).fit(digits.database, digits.labels)
    assert mean_average_precision(method, digits) >= least


@pytest.mark.parametrize("name", PLAIN)
def test_images_by_a_network_of_their_own(name):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    images = rng.integers(0, 100, (60, 8, 8, 3), dtype=np.uint8)
    images[labels == 1, :, :4] += 150
    method = create(name, bits=8, network="tiny", outer=12, progress=False).fit(images, labels)
    assert metrics.mean_average_precision(
        method.encode(images), method.database_codes_, labels, labels, bits=8
    ) > 0.9  # fmt: skip


def test_the_last_layer_of_dhn_learns_ten_times_faster(blobs):
    assert quick("dhn").fit(*blobs).recipe_.head_lr == 10
    assert quick("dhn", recipe={"head_lr": 2.0}).fit(*blobs).recipe_.head_lr == 2
    assert quick("dsh").fit(*blobs).recipe_.head_lr == 1


def test_dpsh_keeps_the_last_outputs_of_every_point_and_no_more():
    method = create("dpsh", bits=3)
    table = method._table(LabelSets.of(HOT), np.arange(6))
    u = torch.randn(2, 3)
    method._gradient(table, u, torch.tensor([4, 1]))
    assert torch.equal(table.outputs[[4, 1]], u)
    assert not table.outputs[[0, 2, 3, 5]].any()


class TestClassifier:
    def test_codes_of_labels_are_distinct_and_spread_codes(self):
        codes = spread_codes(LabelSets.of(np.arange(10)), 12, np.random.default_rng(0))
        distance = (12 - codes @ codes.T) / 2
        assert distance[~np.eye(10, dtype=bool)].min() >= 4

    def test_a_set_of_several_labels_has_the_majority_of_their_codes(self):
        labels = LabelSets.of([["a"], ["b"], ["c"], ["a", "b", "c"], ["a", "b"]])
        codes = spread_codes(labels, 16, np.random.default_rng(0))[labels.ids]
        np.testing.assert_array_equal(codes[3], np.sign(codes[:3].sum(axis=0)))
        np.testing.assert_array_equal(codes[4], codes[0])  # the first decides ties

    def test_an_item_gets_a_code_of_a_label_and_the_whole_database_those_of_its_own(self, blobs):
        Y, labels = blobs
        for name in ("classifier", "classifier_d"):
            method = quick(name, outer=8).fit(Y, labels)
            allowed = {code.tobytes() for code in np.packbits(method.network_.codes.numpy() > 0, axis=1)}
            assert len(allowed) == 3
            assert {code.tobytes() for code in method.encode(Y)} <= allowed
        for label in range(3):
            assert len(np.unique(method.database_codes_[labels == label], axis=0)) == 1

    def test_a_network_of_another_width_is_refused(self, blobs):
        with pytest.raises(InputError, match="8 outputs, but there are 3 label sets"):
            create("classifier", bits=8, network=torch.nn.Linear(8, 8), outer=1).fit(*blobs)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("dsh", {"regulariser": 0}, "regulariser=0"),
        ("dhn", {"quantisation": -1}, "quantisation=-1"),
        ("dpsh", {"eta": "ten"}, "eta='ten'"),
        ("dpsh", {"bits": 0}, "bits=0"),
        ("dpsh", {"seed": -1}, "seed=-1"),
        ("dpsh", {"preset": "best"}, "preset='best'"),
        ("dpsh", {"network": "best"}, "network='best'"),
        ("dpsh", {"progress": "yes"}, "progress='yes'"),
    ],
)
def test_wrong_options_are_refused(blobs, name, options, message):
    with pytest.raises(InputError, match=message):
        create(name, **{"bits": 4, **options}).fit(*blobs)


def test_an_unknown_option_is_refused_by_name():
    with pytest.raises(InputError, match="method 'dpsh' has no such option.*'gamma'"):
        create("dpsh", bits=8, gamma=3)
