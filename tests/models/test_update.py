"""`model.update`: new classes, corrections and removals; what is not touched keeps every bit."""

import numpy as np
import pytest
import torch

import adsh
from adsh import Changes, metrics
from adsh.errors import AdshWarning, InputError
from adsh.models.fingerprint import model_fingerprint

BITS = 16
HEADS = ("bits", "posterior")


def clouds(classes, each, seed):
    """Points of well separated classes in 12 dimensions."""
    labels = np.repeat(np.arange(classes), each)
    centres = 4 * np.random.default_rng(0).standard_normal((classes, 12))
    X = centres[labels] + np.random.default_rng(seed).standard_normal((len(labels), 12))
    return X.astype(np.float32), labels


def fitted(X, labels, head, **values):
    given = {"network": "mlp", "network_options": {"hidden": 32}, "outer": 12, "progress": False}
    return adsh.ADSH(BITS, device="cpu", recipe={"head": head}, **given | values).fit(X, labels)


def found(model, labels):
    """MAP of new points of all classes among the database."""
    queries, truth = clouds(6, 20, seed=9)
    among = np.isin(truth, labels)
    return metrics.mean_average_precision(
        model.encode(queries[among]), model.database_codes_, truth[among], labels, bits=BITS
    )


@pytest.fixture(scope="module")
def data():
    return clouds(6, 60, seed=1)


@pytest.fixture(scope="module", params=HEADS)
def four(request, data):
    """A model of four of six classes, and its codes."""
    X, labels = data
    model = fitted(X[labels < 4], labels[labels < 4], request.param, keep=20)
    return model, model.database_codes_.copy()


@pytest.fixture
def model(four, tmp_path):
    four[0].save(tmp_path / "model")
    return adsh.load(tmp_path / "model")


@pytest.mark.parametrize("has_all", [True, False])
def test_new_classes_are_found_and_no_old_bit_changes(model, four, data, has_all):
    X, labels = data
    old, new = labels < 4, labels >= 4
    assert found(model, labels[old]) > 0.95
    before = model_fingerprint(model)
    assert model.update(X[new], labels[new], old=X[old] if has_all else None, outer=25) is model
    now = np.concatenate([labels[old], labels[new]])
    assert np.array_equal(model.database_codes_[: old.sum()], four[1])
    assert len(model.database_codes_) == len(now)
    assert found(model, now) > 0.93
    assert model.lineage_ == (before,)
    assert model.known_labels == (0, 1, 2, 3, 4, 5)
    codes = {label: {bytes(code) for code in model.database_codes_[now == label]} for label in range(6)}
    assert not codes[4] & codes[5]
    assert not (codes[4] | codes[5]) & set.union(*(codes[k] for k in range(4)))
    assert bytes(model.code_for([5])[0]) in codes[5]


def test_an_updated_model_is_saved_and_updated_again(model, data, tmp_path):
    X, labels = data
    model.update(X[labels == 4], labels[labels == 4], save_to=tmp_path / "once")
    again = adsh.load(tmp_path / "once")
    assert np.array_equal(again.database_codes_, model.database_codes_)
    assert again.outputs(X).tobytes() == model.outputs(X).tobytes()
    assert again.lineage_ == model.lineage_
    assert np.array_equal(again.replay_.positions, model.replay_.positions)
    before = again.database_codes_.copy()
    again.update(X[labels == 5], labels[labels == 5])
    assert np.array_equal(again.database_codes_[: len(before)], before)
    assert len(again.lineage_) == 2
    now = np.concatenate([labels[labels < 4], labels[labels == 4], labels[labels == 5]])
    assert found(again, now) > 0.9
    assert "updated 2 times" in _card(again, tmp_path / "twice")


def _card(model, folder):
    model.save(folder)
    return (folder / "README.md").read_text(encoding="utf-8")


def test_corrections_touch_only_what_they_name(model, four, data):
    X, labels = data
    labels = labels[labels < 4]
    corrected = [0, 1, 61]  # two of class 0, one of class 1
    model.update(old=X[: len(labels)], changes=Changes(relabel={0: 1, 1: 1, 61: 0}, remove=[5, 6]), outer=3)
    kept = np.setdiff1d(np.arange(len(labels)), [5, 6])
    same = ~np.isin(kept, corrected)
    assert np.array_equal(model.database_codes_[same], four[1][kept][same])
    now = model.database_codes_
    of_class = {bytes(code) for code in four[1][labels == 1]}
    assert bytes(now[0]) in of_class
    assert bytes(now[1]) in of_class


def test_classes_are_merged_renamed_and_removed(model, four, data):
    labels = data[1][data[1] < 4]
    model.update(changes=Changes(rename={0: 7, 1: 7, 2: None, 3: 8}))
    assert model.known_labels == (7, 8)
    assert len(model.database_codes_) == 3 * 60
    assert np.array_equal(model.database_codes_[120:], four[1][labels == 3])
    merged = {bytes(code) for code in model.database_codes_[:120]}
    assert {bytes(code) for code in model.code_for([7])} <= merged
    queries, truth = clouds(6, 20, seed=9)
    chosen = np.isin(truth, (0, 1, 3))
    now = np.repeat([7, 8], [120, 60])
    expected = np.where(truth[chosen] == 3, 8, 7)
    assert metrics.mean_average_precision(
        model.encode(queries[chosen]), model.database_codes_, expected, now, bits=BITS
    ) > 0.9  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
def test_items_with_several_labels_are_updated(head):
    rng = np.random.default_rng(2)
    hot = (rng.random((300, 5)) < 0.3).astype(int)
    hot[np.arange(300), np.arange(300) % 5] = 1
    X = (hot @ (4 * rng.standard_normal((5, 12))) + 0.5 * rng.standard_normal((300, 12))).astype(np.float32)
    tags = [[f"t{k}" for k in np.flatnonzero(row)] for row in hot]
    old = [i for i in range(300) if not hot[i, 4]]
    new = [i for i in range(300) if hot[i, 4]]
    model = fitted(X[old], [tags[i] for i in old], head)
    before = model.database_codes_.copy()
    model.update(X[new], [tags[i] for i in new], old=X[old])
    assert np.array_equal(model.database_codes_[: len(old)], before)
    assert model.known_labels == ("t0", "t1", "t2", "t3", "t4")
    hot = hot[[*old, *new]]
    relevance = metrics.mean_average_precision(
        model.encode(X[new]), model.database_codes_, hot[len(old) :], hot, bits=BITS
    )
    assert relevance > 0.8


def test_single_labels_become_several(data):
    X, labels = data
    old, new = labels < 4, labels >= 4
    model = fitted(X[old], [str(k) for k in labels[old]], "posterior")
    before = model.database_codes_.copy()
    model.update(X[new], [[str(k), "odd"] if k % 2 else [str(k)] for k in labels[new]], old=X[old])
    assert np.array_equal(model.database_codes_[: old.sum()], before)
    assert "odd" in model.known_labels
    model.update(X[:10], ["odd"] * 10)
    assert np.array_equal(model.database_codes_[: old.sum()], before)


def test_items_without_a_label_keep_their_codes_and_new_ones_are_encoded(data):
    X, labels = data
    some = np.where(np.arange(len(labels)) % 5, labels, -1)
    old, new = labels < 4, labels >= 4
    model = fitted(X[old], some[old], "bits")
    before = model.database_codes_.copy()
    model.update(X[new], some[new])
    assert np.array_equal(model.database_codes_[: old.sum()], before)
    without = np.flatnonzero(some[new] < 0)
    assert np.array_equal(model.database_codes_[old.sum() + without], model.encode(X[new][without]))


@pytest.mark.parametrize("network", ["tiny", "frozen:tiny"])
def test_networks_on_images_are_updated(network):
    rng = np.random.default_rng(4)
    labels = np.repeat(np.arange(4), 30)
    colours = rng.integers(0, 256, (4, 1, 1, 3))
    images = np.clip(colours[labels] + rng.integers(-20, 21, (120, 16, 16, 3)), 0, 255).astype(np.uint8)
    old = labels < 3
    model = adsh.ADSH(BITS, network=network, outer=12, device="cpu", progress=False)
    model.fit(images[old], labels[old])
    before = model.database_codes_.copy()
    model.update(images[~old], labels[~old])
    assert np.array_equal(model.database_codes_[: old.sum()], before)
    assert model.replay_.items.ndim == (2 if network.startswith("frozen") else 4)
    share = metrics.mean_average_precision(model.encode(images), model.database_codes_, labels, labels, bits=BITS)
    assert share > 0.8


class Stop(Exception):
    pass


@pytest.mark.parametrize("head", HEADS)
def test_an_update_that_stops_leaves_the_model_and_resumes_to_the_same_bytes(head, data, tmp_path):
    X, labels = data
    old, new = labels < 4, labels >= 4
    base = fitted(X[old], labels[old], head)
    base.save(tmp_path / "model")
    whole = adsh.load(tmp_path / "model").update(X[new], labels[new])

    def stop(record):
        if record["outer"] == 3:
            raise Stop

    model = adsh.load(tmp_path / "model")
    with pytest.raises(Stop):
        model.update(X[new], labels[new], callback=stop, checkpoints=tmp_path / "checkpoints")
    assert np.array_equal(model.database_codes_, base.database_codes_)
    assert model.lineage_ == ()
    assert model.outputs(X).tobytes() == base.outputs(X).tobytes()
    model.update(X[new], labels[new], checkpoints=tmp_path / "checkpoints", resume=True)
    assert np.array_equal(model.database_codes_, whole.database_codes_)
    assert model.outputs(X).tobytes() == whole.outputs(X).tobytes()
    other = adsh.load(tmp_path / "model")
    with pytest.raises(InputError, match="labels"):
        other.update(X[new], labels[new] + 1, checkpoints=tmp_path / "checkpoints", resume=True)


def test_without_kept_items_codes_are_updated_and_it_is_said(data):
    X, labels = data
    model = fitted(X[labels < 4], labels[labels < 4], "posterior", keep=0)
    assert model.replay_ is None
    before = model.database_codes_.copy()
    with pytest.warns(AdshWarning, match="the network does not"):
        model.update(changes=Changes(rename={0: 1}))
    assert np.array_equal(
        np.delete(model.database_codes_, np.s_[60:120], axis=0), np.delete(before, np.s_[60:120], axis=0)
    )
    assert np.array_equal(model.database_codes_[60:120], np.repeat(before[:1], 60, axis=0))


def test_mistakes_are_said_in_a_line(model, data):
    X, labels = data
    for arguments, said in (
        ({}, "nothing to update"),
        ({"Y": X}, "give the labels of the new items"),
        ({"labels": labels}, "labels without items"),
        ({"Y": X[:5, :3], "labels": labels[:5]}, "X have shape (3,)"),
        ({"Y": X[:5], "labels": labels[:4]}, "labels are for 4 points"),
        ({"Y": X[:5], "labels": ["cat"] * 5}, "some labels are text"),
        ({"Y": X[:5], "labels": labels[:5], "old": X}, "old has 360 items, but the database has 240"),
        ({"changes": Changes(remove=range(240))}, "would be left"),
    ):
        with pytest.raises(InputError) as problem:
            model.update(arguments.pop("Y", None), arguments.pop("labels", None), **arguments)
        assert said in str(problem.value), said
    given = adsh.ADSH(BITS, network="mlp", outer=1, device="cpu", progress=False)
    given.fit(X[:60], similarity=np.where(labels[:60, None] == labels[None, :60], 1, -1) * np.where(np.eye(60), 1, -1))
    with pytest.raises(InputError, match="fit a new one"):
        given.update(X[60:], labels[60:])


def test_kept_items_are_typical_and_few(data):
    X, labels = data
    model = fitted(X, labels, "posterior", keep=7)
    assert np.bincount(labels[model.replay_.positions]).tolist() == [7] * 6
    assert np.array_equal(model.replay_.items, X[model.replay_.positions])
    with pytest.raises(InputError, match="keep=-1"):
        fitted(X, labels, "posterior", keep=-1)


def test_fitting_is_not_changed_by_what_is_kept(data):
    X, labels = data
    one, other = (fitted(X, labels, "bits", keep=keep) for keep in (0, 50))
    assert np.array_equal(one.database_codes_, other.database_codes_)
    for mine, theirs in zip(one.network_.parameters(), other.network_.parameters(), strict=True):
        assert torch.equal(mine, theirs)
