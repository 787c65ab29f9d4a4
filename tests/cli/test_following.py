"""An index follows the updates of its model: nothing that stays is touched, and queries use the newest network."""

import numpy as np
import pytest

import adsh as library
from adsh.index import Index, open_index
from adsh.runs.database import RunItems
from tests.index import stores

from .test_update import write

KINDS = ("embedded", "postgres", "milvus")


@pytest.fixture(scope="module", autouse=True)
def _servers():
    yield
    stores.stop()


@pytest.fixture
def trained(adsh, tmp_path):
    """A run with an index of its database, and new items; the model before is in `before`."""
    write("old.npz", ["c0", "c1", "c2", "c3"], 40, 1, "old")
    write("new.npz", ["c4", "c5"], 40, 2, "new")
    train = ("--bits", 16, "--outer", 10, "--out", "m", "--no-report", "--index", "--protocol", "all")
    ended = adsh("train", "old.npz", *train)
    assert ended.status == 0, ended.err
    rng = np.random.default_rng(5)
    np.savez(
        "bare.npz", features=rng.standard_normal((30, 12)).astype(np.float32), keys=[f"bare-{i}" for i in range(30)]
    )
    assert adsh("index", "add", "m", "bare.npz").status == 0
    return tmp_path / "m"


def contents(location):
    with open_index(location) as index:
        return {item.key: (item.code, item.metadata) for item in index.items()}


@pytest.fixture(params=KINDS)
def elsewhere(request, adsh, trained, tmp_path):
    """The same index in a store of each kind."""
    place = stores.place(request.param, tmp_path)
    assert adsh("index", "copy", "m/index", place.location).status == 0
    return place.location


def test_an_index_follows_and_what_stays_is_not_touched(adsh, trained, elsewhere):
    before = contents(elsewhere)
    with open_index(elsewhere) as index:
        order = index.keys()
        assert index.outdated() == []
        assert index.networks(["bare-0", "old-0"]) == [0, None]
    (trained.parent / "right.csv").write_text("old-0,c1\n")
    ended = adsh(
        "update", "m", "new.npz", "--outer", 4, "--relabel", "right.csv", "--remove", "old-1", "--rename", "c2=d2",
        "--index", elsewhere, "--json",
    )  # fmt: skip
    assert ended.status == 0, ended.err
    followed = ended.json["index"]
    assert (followed["added"], followed["removed"], followed["outdated"]) == (80, 1, 30)
    after = contents(elsewhere)
    model, items = library.load(trained), RunItems.load(trained)
    codes = dict(zip(items.keys, model.database_codes_, strict=True))
    assert set(after) == {*items.keys, *(f"bare-{i}" for i in range(30))}
    assert {key: after[key][0] for key in codes} == {key: code.tobytes() for key, code in codes.items()}
    assert after["old-0"][1] == before["old-0"][1] | {"class": "c1"}
    assert after["new-0"][1]["class"] == "c4"
    for key in ("old-5", "old-130", "bare-3"):  # of c0, of c3, and without a label
        assert after[key] == before[key]
    assert after["old-90"] == (before["old-90"][0], before["old-90"][1] | {"class": "d2"})
    with open_index(elsewhere) as index:
        assert index.keys()[: len(order) - 1] == [key for key in order if key != "old-1"]
        assert len(index.outdated()) == 30
        assert len(index.lineage) == 1

    again = adsh("index", "follow", elsewhere, "m", "--json").json
    assert (again["added"], again["changed"], again["removed"]) == (0, 0, 0)
    recoded = adsh("index", "recode", elsewhere, "m", "--json").json
    assert (recoded["recoded"], recoded["unreadable"]) == (30, [])
    now = contents(elsewhere)
    with np.load("bare.npz") as file:
        expected = model.encode(file["features"])
    assert [now[f"bare-{i}"][0] for i in range(30)] == [code.tobytes() for code in expected]
    assert adsh("index", "recode", elsewhere, "m", "--json").json["recoded"] == 0
    assert adsh("index", "info", elsewhere, "--json").json["of_earlier_network"] == 0


def test_the_index_in_the_folder_follows_by_itself(adsh, trained):
    ended = adsh("update", "m", "new.npz", "--outer", 4)
    assert ended.status == 0, ended.err
    assert "270 items, 80 added, 0 changed, 0 removed; 30 are encoded by the earlier network" in ended.out
    assert adsh("index", "verify", "m/index").status == 0
    query = library.load(trained).encode(np.load("new.npz")["features"][:1])
    with open_index("m/index", model="m") as index:
        assert index.search(query, k=1)[0].metadata[0]["class"] == "c4"


def test_an_index_takes_descendants_and_refuses_strangers_and_ancestors(adsh, refused, trained):
    assert adsh("update", "m", "new.npz", "--outer", 2, "--out", "newer").status == 0
    assert adsh("train", "old.npz", "--bits", 16, "--outer", 2, "--seed", 9, "--out", "other").status == 0
    write("query.npz", ["c0"], 1, 9, "query")
    add = ("index", "add", "--model")
    assert adsh(*add, "newer", "m/index", "query.npz").status == 0  # codes that stay can be compared
    assert adsh("index", "add", "newer/index", "query.npz").status == 0
    assert "use the newer model" in refused(*add, "m", "newer/index", "query.npz")
    assert "is not the one" in refused(*add, "other", "newer/index", "query.npz")
    assert "use the newer model" in refused("index", "recode", "newer/index", "m")
    assert "adsh index follow" in refused("index", "recode", "m/index", "newer")
    assert "two models cannot be compared" in refused("index", "follow", "newer/index", "other")
    with open_index("newer/index") as index, pytest.raises(library.errors.InputError, match="use the newer model"):
        index.accept_model("m")


def test_an_interrupted_follow_goes_on(adsh, trained, monkeypatch):
    from adsh.runs import follow_index

    monkeypatch.setattr(follow_index, "_BLOCK", 16)
    adds = []
    whole = Index.add

    def stop(self, *args, **kwargs):
        adds.append(1)
        if len(adds) == 3:
            raise KeyboardInterrupt
        return whole(self, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(Index, "add", stop)
        stopped = adsh("update", "m", "new.npz", "--outer", 2)
    assert stopped.status == 130
    assert "the model is updated, its index is not" in stopped.err
    with open_index("m/index") as index:
        assert len(index) == 190 + 32
    ended = adsh("update", "m", "--resume")
    assert ended.status == 0, ended.err
    assert len(contents("m/index")) == 270
    assert not (trained / "updating").exists()
