from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from adsh.errors import FolderError, NotFittedError
from adsh.methods import DEEP, METHODS, create, load

OPTIONS = {
    "sdh": {"anchors": 40, "rounds": 2},
    "cosdish": {"trees": 5, "rounds": 2},
    "lfh": {"hash_function": "ridge"},
    "lfh_decay": {"hash_function": "ridge"},
    "fasth": {"trees": 5},
    "lin_v": {"rounds": 1},
    "lin_lin": {"rounds": 1},
}


@pytest.mark.parametrize("name", [name for name in METHODS if name not in DEEP])
def test_a_loaded_method_encodes_as_before(name, blobs, tmp_path):
    given = OPTIONS.get(name.removesuffix("_d"), {})
    method = create(name, bits=8, seed=2, **given).fit(*blobs)
    method.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert type(again) is type(method)
    assert (again.bits, again.whole, again.history_) == (8, method.whole, method.history_)
    assert again.options == method.options
    assert {**again.options, **given} == again.options
    np.testing.assert_array_equal(again.database_codes_, method.database_codes_)
    np.testing.assert_array_equal(again.encode(blobs[0]), method.encode(blobs[0]))
    again.save(tmp_path / "saved")  # over itself


def test_constant_bits_of_trees_come_back(blobs, tmp_path):
    method = create("cosdish", bits=8, trees=2).fit(*blobs)
    method.hash_.boosters[3] = -1.0
    method.save(tmp_path / "saved")
    assert load(tmp_path / "saved").hash_.boosters[3] == -1.0


def test_what_cannot_be_saved_is_refused(blobs, tmp_path):
    with pytest.raises(NotFittedError, match="not fitted"):
        create("itq", bits=4).save(tmp_path / "saved")
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(FolderError, match="holds other files"):
        create("itq", bits=4).fit(blobs[0]).save(tmp_path)


def test_what_cannot_be_loaded_is_refused(blobs, tmp_path):
    with pytest.raises(FolderError, match="is not a folder"):
        load(tmp_path / "nowhere")
    folder = tmp_path / "saved"
    create("itq", bits=4).fit(blobs[0]).save(folder)
    text = (folder / "config.json").read_text()
    for wrong, message in (
        ("{", "cannot be read"),
        (json.dumps({**json.loads(text), "functions": {"fit": "linear"}}), "not a whole adsh model"),
    ):
        (folder / "config.json").write_text(wrong)
        with pytest.raises(FolderError, match=message):
            load(folder)
    (folder / "config.json").write_text(json.dumps({**json.loads(text), "version": 99}))
    with pytest.raises(FolderError, match="upgrade adsh"):
        load(folder)
    (folder / "config.json").write_text(text)
    (folder / "arrays.safetensors").write_bytes(b"short")
    with pytest.raises(FolderError, match="not a whole adsh model"):
        load(folder)


def test_a_model_of_the_other_kind_is_replaced_whole(blobs, tmp_path):
    folder = tmp_path / "saved"
    create("itq", bits=4).fit(blobs[0]).save(folder)
    create("dsh", bits=4, outer=1).fit(*blobs).save(folder)
    assert load(folder).name == "dsh"
    assert not (folder / "arrays.safetensors").exists()
    create("itq", bits=4).fit(blobs[0]).save(folder)
    assert load(folder).name == "itq"
    assert sorted(path.name for path in folder.iterdir()) == ["arrays.safetensors", "config.json"]


@pytest.mark.parametrize("name", ["itq", "dsh_d"])
@pytest.mark.parametrize("loader", ["adsh.load", "adsh.methods.load"])
def test_a_fresh_process_finds_the_method_by_its_name(name, loader, blobs, tmp_path):
    create(name, bits=4, progress=False, **({"outer": 1, "device": "cpu"} if name in DEEP else {})).fit(
        *blobs, save_to=tmp_path / "saved"
    )
    program = f"import adsh; model = {loader}({str(tmp_path / 'saved')!r}); print(model.name, model.use_full_database)"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.split() == [name.removesuffix("_d"), str(name.endswith("_d"))]
