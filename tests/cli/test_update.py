"""`adsh update`: a run's folder changes whole, by new items, other labels and other classes."""

import json
import shutil

import numpy as np
import pytest

import adsh as library
from adsh.runs.database import RunItems
from adsh.runs.update_record import read_updates

CENTRES = 4 * np.random.default_rng(0).standard_normal((6, 12))


def write(path, classes, each, seed, name):
    """Features of well separated classes, with keys."""
    labels = np.repeat(np.array(classes), each)
    X = CENTRES[[int(label[1:]) for label in labels]] + np.random.default_rng(seed).standard_normal((len(labels), 12))
    keys = [f"{name}-{i}" for i in range(len(labels))]
    np.savez(path, features=X.astype(np.float32), labels=labels, keys=np.array(keys))
    return keys


@pytest.fixture
def run(adsh, tmp_path):
    """A run on four classes in the folder `m`, and new items of two more in `new.npz`."""
    write("old.npz", ["c0", "c1", "c2", "c3"], 40, 1, "old")
    write("new.npz", ["c4", "c5"], 40, 2, "new")
    trained = adsh("train", "old.npz", "--bits", 16, "--outer", 10, "--out", "m", "--no-report", "--keep", 20)
    assert trained.status == 0, trained.err
    return tmp_path / "m"


def bytes_of(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def test_new_classes_are_added_and_no_old_code_changes(adsh, run):
    before, keys = library.load(run).database_codes_, list(RunItems.load(run).keys)
    ended = adsh("update", "m", "new.npz", "--outer", 12, "--json")
    assert ended.status == 0, ended.err
    said = ended.json
    assert (said["new_items"], said["new_classes"], said["changed_codes"]) == (80, ["c4", "c5"], 0)
    assert said["old_items"] == f"all {len(keys):,}"
    model, items = library.load(run), RunItems.load(run)
    assert np.array_equal(model.database_codes_[: len(before)], before)
    assert list(items.keys) == [*keys, *(f"new-{i}" for i in range(80))]
    assert [model.database_labels_[i][0] for i in range(len(keys), len(items))] == ["c4"] * 40 + ["c5"] * 40
    assert model.lineage_ == (said["before"],)
    assert not (run / "updating").exists()
    assert json.loads((run / "log.jsonl").read_text().splitlines()[-2])["event"] == "updated"
    assert 'source = "' in (run / "run.toml").read_text().partition("[update.1]")[2]
    evaluated = adsh("evaluate", "m", "--json")
    assert evaluated.status == 0, evaluated.err


def test_the_next_update_has_all_items_of_the_ones_before(adsh, run):
    write("third.npz", ["c4"], 10, 3, "third")
    assert adsh("update", "m", "new.npz", "--outer", 3).status == 0
    said = adsh("update", "m", "third.npz", "--outer", 2, "--json").json
    assert said["old_items"] == f"all {len(RunItems.load(run)) - 10:,}"
    assert [update.after for update in read_updates(run)][:1] == [read_updates(run)[1].before]
    with np.load("third.npz") as file:
        assert len(library.load(run).encode(file["features"])) == 10


def test_labels_are_corrected_classes_renamed_and_items_removed(adsh, run):
    before = dict(zip(RunItems.load(run).keys, library.load(run).database_codes_, strict=True))
    old = [key for key in before if int(key[4:]) < 40]  # of c0
    (run.parent / "right.csv").write_text(f"key,label\n{old[0]},c1\n")
    (run.parent / "gone.txt").write_text(f"{old[1]}\n")
    ended = adsh(
        "update", "m", "--relabel", "right.csv", "--rename", "c2=c3", "--remove", "@gone.txt", "--remove", old[2],
        "--outer", 2,
    )  # fmt: skip
    assert ended.status == 0, ended.err
    assert "0 of the items whose labels did not change" in ended.out
    model = library.load(run)
    after = dict(zip(RunItems.load(run).keys, model.database_codes_, strict=True))
    assert set(before) - set(after) == {old[1], old[2]}
    assert model.known_labels == ("c0", "c1", "c3")
    assert bytes(after[old[0]]) in {bytes(code) for key, code in before.items() if 40 <= int(key[4:]) < 80}
    for key in old[3:]:
        assert np.array_equal(after[key], before[key])
    record = read_updates(run)[0]
    assert old[0] in record.changed
    assert record.rename == {"c2": "c3"}
    assert sorted(record.removed) == sorted(old[1:3])


def test_old_items_come_from_where_they_are(adsh, run):
    shutil.move("old.npz", "moved.npz")
    said = adsh("update", "m", "new.npz", "--outer", 2, "--out", "kept", "--json").json
    assert said["old_items"].startswith("80 kept beside the model (")
    said = adsh("update", "m", "new.npz", "--outer", 2, "--out", "all", "--old", "moved.npz", "--json").json
    assert said["old_items"] == f"all {len(RunItems.load(run)):,}"
    write("old.npz", ["c0", "c1", "c2", "c3"], 40, 99, "old")  # other items under the same name
    said = adsh("update", "m", "new.npz", "--outer", 2, "--out", "other", "--json").json
    assert "old.npz is not what it was" in said["old_items"]
    assert library.load(run).lineage_ == ()
    assert (run.parent / "all" / "split.npz").exists()


def test_a_source_that_has_grown_gives_its_new_items_alone(adsh, run):
    with np.load("new.npz") as file:
        features, labels, keys = (file[name] for name in ("features", "labels", "keys"))
    np.savez("some.npz", features=features[:70], labels=labels[:70], keys=keys[:70])
    shutil.move("some.npz", "grown.npz")
    assert adsh("update", "m", "grown.npz", "--outer", 2).status == 0
    np.savez("grown.npz", features=features, labels=labels, keys=keys)
    said = adsh("update", "m", "grown.npz", "--outer", 2, "--json").json
    assert (said["new_items"], said["known_items"]) == (10, 70)
    left_out = RunItems.load(run).left_out
    assert len(left_out) == 16
    assert not left_out & set(RunItems.load(run).keys)


def test_an_interrupted_update_is_resumed_to_the_same_bytes(adsh, run, monkeypatch):
    assert adsh("update", "m", "new.npz", "--outer", 4, "--out", "whole").status == 0
    before = bytes_of(run)
    from adsh.runs import update

    def stop(self, record):
        if record["outer"] == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(update._Recorder, "on_iteration", stop)
        stopped = adsh("update", "m", "new.npz", "--outer", 4)
    assert stopped.status == 130
    assert "adsh update --resume m" in stopped.err
    assert bytes_of(run) == before
    refused = adsh("update", "m", "new.npz", "--outer", 4)
    assert refused.status == 2
    assert "--resume" in refused.err
    assert adsh("update", "--resume", "m").status == 0
    for name in ("model.safetensors", "codes.safetensors", "row_numbers.npy", "items.npz"):
        assert (run / name).read_bytes() == (run.parent / "whole" / name).read_bytes(), name


def test_what_cannot_be_updated_is_refused_in_one_line(adsh, refused, run):
    before = bytes_of(run)
    assert "nothing to update" in refused("update", "m")
    assert "no unfinished update" in refused("update", "m", "--resume")
    assert "'nobody'" in refused("update", "m", "--remove", "nobody")
    assert "OLD=NEW" in refused("update", "m", "--rename", "c0")
    assert "'dog'" in refused("update", "m", "--rename", "dog=cat")
    shutil.copy("old.npz", "copy.npz")
    assert "--prefix" in refused("update", "m", "copy.npz")
    assert "holds a model" in refused("update", "m", "new.npz", "--out", shutil.copytree("m", "other"))
    np.savez("bare.npz", features=np.zeros((3, 12), np.float32))
    assert "has no labels" in refused("update", "m", "bare.npz")
    assert bytes_of(run) == before
    (run / "items.npz").unlink()
    assert "has no items.npz" in refused("update", "m", "new.npz")
    assert adsh("train", "old.npz", "--bits", 8, "--method", "itq", "--out", "itq").status == 0
    assert "only those of adsh" in refused("update", "itq", "new.npz")


def test_corrections_are_applied_at_once_and_learned_by_the_next_update(adsh, refused, run):
    assert adsh("index", "build", "m/index", "--model", "m").status == 0
    keys = list(RunItems.load(run).keys)
    first, second = keys[0], keys[1]
    (run.parent / "right.csv").write_text(f"key,label\n{first},c3\n{second},new kind\n")
    done = adsh("index", "corrections", "m", "--import", "right.csv", "--json")
    assert done.status == 0, done.err
    [created] = done.json["corrections"]
    assert [item["code_changed"] for item in created["items"]] == [True, False]
    assert adsh("index", "corrections", "m", "--csv", "out.csv").status == 0
    assert (run.parent / "out.csv").read_text().split() == ["key,label", *f"{first},c3 {second},new kind".split()]
    said = adsh("update", "m", "--corrections", "--outer", 2, "--json").json
    assert (said["changed_items"], said["new_classes"], said["changed_codes"]) == (2, ["new kind"], 0)
    labels = dict(zip(RunItems.load(run).keys, library.load(run).database_labels_, strict=True))
    assert (labels[first], labels[second]) == (("c3",), ("new kind",))
    assert "no open corrections" in adsh("index", "corrections", "m").out
    assert "has no open corrections" in refused("update", "m", "--corrections")
    assert adsh("index", "corrections", "m", "--import", "right.csv").status == 0
    assert adsh("index", "corrections", "m", "--undo", "2").out == "no open corrections\n"
