import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import adsh
from adsh.errors import FolderError
from adsh.utils import files

from .. import forked


@pytest.fixture
def model(blobs):
    return adsh.ADSH(12, network="linear", outer=2, samples=60, device="cpu").fit(*blobs)


def same(a, b, points):
    return (
        np.array_equal(a.database_codes_, b.database_codes_)
        and a.outputs(points).tobytes() == b.outputs(points).tobytes()
        and np.array_equal(a.code_for([0, 2, 9]), b.code_for([0, 2, 9]))
    )


def test_a_saved_model_loads_as_it_was(model, blobs, tmp_path):
    model.save(tmp_path / "a" / "model")
    loaded = adsh.load(tmp_path / "a" / "model")
    assert same(model, loaded, blobs[0])
    assert loaded.get_params() == model.get_params()
    assert loaded.history_ == model.history_
    assert len(loaded.code_table_.rows) == len(model.code_table_.rows)
    assert np.array_equal(loaded.code_table_.dense(), model.code_table_.dense())
    loaded.save(tmp_path / "a" / "model")  # over itself, its row numbers being mapped from there
    assert same(model, adsh.load(tmp_path / "a" / "model"), blobs[0])


def test_the_folder_holds_what_it_says_and_no_pickle(model, tmp_path):
    model.save(tmp_path / "m")
    names = {path.name for path in (tmp_path / "m").iterdir()}
    assert names == {
        "config.json", "model.safetensors", "codes.safetensors", "row_numbers.npy", "replay.safetensors",
        "familiarity.safetensors", "README.md",
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"m"}
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["format_version"] == 1
    card = (tmp_path / "m" / "README.md").read_text()
    assert "12 bits" in card
    assert "adsh.load" in card
    assert np.load(tmp_path / "m" / "row_numbers.npy").dtype == np.uint8


def test_every_way_of_fitting_can_be_saved(blobs, tmp_path):
    points, labels = blobs
    ways = {
        "strings": {"labels": np.array(["ant", "bee", "cat"])[labels]},
        "tags": {"labels": [["ant", "cat"] if k else ["bee"] for k in labels]},
        "some": {"labels": np.where(np.arange(300) % 5, labels, -1)},
        "pairs": {"similarity": np.where(labels[:, None] == labels, 1, -1)},
        "queries": {"labels": labels, "queries": points[:50], "query_labels": labels[:50]},
    }
    for name, given in ways.items():
        model = adsh.ADSH(9, outer=1, samples=50, device="cpu").fit(points, **given)
        model.save(tmp_path / name)
        loaded = adsh.load(tmp_path / name)
        assert np.array_equal(model.database_codes_, loaded.database_codes_), name
        assert np.array_equal(model.encode(points), loaded.encode(points)), name
        if "labels" in given:
            new = {"strings": ["cat"], "tags": [["bee", "ant"]]}.get(name, [1])
            assert np.array_equal(model.code_for(new), loaded.code_for(new)), name


def test_a_users_own_module_must_be_given_to_load(blobs, tmp_path):
    model = adsh.ADSH(12, network=torch.nn.Linear(8, 12), outer=1, samples=60).fit(*blobs)
    model.save(tmp_path / "m")
    with pytest.raises(FolderError, match="Linear: pass it as load.folder, network="):
        adsh.load(tmp_path / "m")
    loaded = adsh.load(tmp_path / "m", network=torch.nn.Linear(8, 12))
    assert same(model, loaded, blobs[0])
    with pytest.raises(FolderError, match="do not fit the network"):
        adsh.load(tmp_path / "m", network=torch.nn.Linear(8, 16))


def test_options_of_a_created_network_come_back(blobs, tmp_path):
    network = adsh.create_network("mlp", 12, (8,), hidden=20)
    adsh.ADSH(12, network=network, outer=1, samples=60).fit(*blobs, save_to=tmp_path / "m")
    assert adsh.load(tmp_path / "m").network_.hidden.out_features == 20


# Folders that cannot be read --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.safetensors", "codes.safetensors", "row_numbers.npy", "config.json"])
@pytest.mark.parametrize("fault", ["truncated", "missing", "damaged"])
def test_a_folder_that_is_not_whole_is_refused(model, tmp_path, name, fault):
    model.save(tmp_path / "m")
    path = tmp_path / "m" / name
    whole = path.read_bytes()
    if fault == "missing":
        path.unlink()
    elif fault == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif name == "config.json":
        path.write_bytes(b"[1]")
    else:
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(FolderError, match=name.replace(".", r"\.")):
        adsh.load(tmp_path / "m")


def test_a_foreign_folder_and_a_future_version_are_refused(model, tmp_path):
    (tmp_path / "other").mkdir()
    with pytest.raises(FolderError, match=r"no config\.json"):
        adsh.load(tmp_path / "other")
    with pytest.raises(FolderError, match="not a folder"):
        adsh.load(tmp_path / "nothing")
    (tmp_path / "other" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(FolderError, match="not an adsh model"):
        adsh.load(tmp_path / "other")
    model.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps(config | {"format_version": 99}))
    with pytest.raises(FolderError, match="format version 99.*upgrade"):
        adsh.load(tmp_path / "m")


# Folders that cannot be written -----------------------------------------------------------------------


def test_an_unwritable_folder_is_reported_before_training(blobs, tmp_path):
    (tmp_path / "file").write_text("")
    records = []
    for target in (tmp_path / "file", tmp_path / "file" / "m"):
        with pytest.raises(FolderError, match="is a file|cannot write"):
            adsh.ADSH(12, outer=1).fit(*blobs, callback=records.append, save_to=target)
    assert not records


def test_a_full_disk_is_reported_before_training_and_keeps_the_old_model(model, blobs, tmp_path, monkeypatch):
    model.save(tmp_path / "m")
    records = []
    usage = files.shutil.disk_usage(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(files.shutil, "disk_usage", lambda path: usage._replace(free=1000))
        with pytest.raises(FolderError, match="not enough space"):
            adsh.ADSH(12, outer=1).fit(*blobs, callback=records.append, save_to=tmp_path / "m")
    assert not records

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.save", full)  # fills up half-way through
    other = adsh.ADSH(12, outer=1, samples=60, seed=4).fit(*blobs)
    with pytest.raises(FolderError, match="no space is left.*kept"):
        other.save(tmp_path / "m")
    assert same(model, adsh.load(tmp_path / "m"), blobs[0])
    assert {path.name for path in tmp_path.iterdir()} == {"m"}


@pytest.mark.parametrize("name", ["cat.jpg", "config.json"])
def test_a_folder_of_other_things_is_not_replaced(model, blobs, tmp_path, name):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / name).write_text('{"model_type": "bert"}')
    with pytest.raises(FolderError, match="holds other files"):
        model.save(tmp_path / "photos")
    records = []
    with pytest.raises(FolderError, match="holds other files"):
        adsh.ADSH(12, outer=1).fit(*blobs, callback=records.append, save_to=tmp_path / "photos")
    assert not records
    assert (tmp_path / "photos" / name).exists()


def test_other_files_in_the_folder_of_a_model_are_kept(model, tmp_path):
    model.save(tmp_path / "m")
    (tmp_path / "m" / "notes.txt").write_text("mine")
    (tmp_path / "m" / "report").mkdir()
    model.save(tmp_path / "m")
    assert (tmp_path / "m" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "m" / "report").is_dir()


def test_a_link_to_a_folder_is_followed(model, blobs, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "m").symlink_to(tmp_path / "disk" / "m")
    for _ in range(3):
        model.save(tmp_path / "m")
    assert (tmp_path / "m").is_symlink()
    assert same(model, adsh.load(tmp_path / "m"), blobs[0])
    assert {path.name for path in tmp_path.iterdir()} == {"m", "disk"}


def test_the_working_directory_is_not_replaced(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FolderError, match="working directory"):
        model.save(".")
    model.save("below")
    assert adsh.load("below").bits == 12


def test_saved_files_are_readable_by_others_as_the_umask_says(model, tmp_path):
    before = os.umask(0o022)
    try:
        model.save(tmp_path / "m")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "m").iterdir()} == {0o644}


def test_numpy_and_torch_parameters_can_be_saved(blobs, tmp_path):
    given = {"bits": np.int64(12), "seed": np.int64(3), "samples": np.int64(50), "gamma": np.float32(2)}
    model = adsh.ADSH(given.pop("bits"), **given, outer=1, device=torch.device("cpu"))
    model.fit(*blobs, save_to=tmp_path / "m")
    loaded = adsh.load(tmp_path / "m")
    assert (loaded.bits, loaded.seed, loaded.gamma, loaded.device) == (12, 3, 2.0, "cpu")
    assert np.array_equal(loaded.database_codes_, model.database_codes_)


def test_a_model_of_another_device_loads_on_what_there_is(model, blobs, tmp_path):
    model.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    config["params"]["device"] = "xpu"
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.warns(adsh.AdshWarning, match="'xpu', which this machine does not have"):
        loaded = adsh.load(tmp_path / "m")
    assert same(model, loaded, blobs[0])
    with pytest.raises(adsh.AdshError, match="device='gpu' cannot be used"):
        adsh.load(tmp_path / "m", device="gpu")


@pytest.mark.parametrize(
    "spoil",
    [
        {"files": None},
        {"files": []},
        {"files": {"model.safetensors": None}},
        {"format_version": "1"},
        {"format_version": 0},
        {"history": None},
        {"params": None},
        {"recipe": {"outer": 0}},
        {"labels": {}},
    ],
)
def test_a_config_with_anything_else_in_it_is_refused_in_one_line(model, tmp_path, spoil):
    model.save(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    (tmp_path / "m" / "config.json").write_text(json.dumps(config | spoil))
    with pytest.raises(adsh.AdshError) as raised:
        adsh.load(tmp_path / "m")
    assert "\n" not in str(raised.value)


def test_a_failed_rename_puts_the_old_folder_back(tmp_path, monkeypatch):
    folder = tmp_path / "m"
    with files.replacing(folder) as new:
        (new / "x").write_text("old")
    rename = files.Path.rename

    def refuses(path, target):
        if path.name.endswith(".new"):
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(files.Path, "rename", refuses)
    with pytest.raises(FolderError, match="kept"), files.replacing(folder) as new:
        (new / "x").write_text("new")
    assert (folder / "x").read_text() == "old"


def test_a_crash_between_the_renames_leaves_the_old_model_to_load(model, blobs, tmp_path):
    model.save(tmp_path / "m")
    (tmp_path / "m").rename(tmp_path / ".m.previous")
    assert same(model, adsh.load(tmp_path / "m"), blobs[0])
    model.save(tmp_path / "m")
    assert same(model, adsh.load(tmp_path / "m"), blobs[0])
    assert {path.name for path in tmp_path.iterdir()} == {"m"}


def test_a_process_killed_while_saving_leaves_a_whole_model(model, tmp_path):
    """SIGKILL at several moments of an endless series of saves: what loads is always whole."""
    model.save(tmp_path / "m")
    script = f"import adsh\nfolder = {str(tmp_path / 'm')!r}\nm = adsh.load(folder)\nprint(1, flush=True)\n"
    script += "while True:\n    m.save(folder)"
    rng = np.random.default_rng(0)
    for _ in range(4):
        process = forked.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(rng.uniform(0.01, 0.2))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert np.array_equal(adsh.load(tmp_path / "m").database_codes_, model.database_codes_)
