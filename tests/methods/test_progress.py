"""What a method tells while it learns, and what it keeps of it."""

from __future__ import annotations

import pytest

from adsh.methods import DEEP, METHODS, create

OPTIONS = {"sdh": {"anchors": 40}, **{name: {"trees": 3} for name in ("cosdish", "lfh", "lfh_decay", "fasth")}}


class RecordingCallback:
    def __init__(self):
        self.facts, self.records, self.phases = [], [], []

    def started(self, facts):
        self.facts.append(facts)

    def __call__(self, record):
        self.records.append(record)

    def phase(self, text):
        self.phases.append(text)


@pytest.mark.parametrize("name", METHODS)
def test_a_callback_gets_the_start_and_every_round(name, blobs, capsys):
    options = (
        {"outer": 2, "network_options": {"hidden": 8}} if name in DEEP else OPTIONS.get(name.removesuffix("_d"), {})
    )
    callback = RecordingCallback()
    method = create(name, bits=6, progress=True, **options).fit(*blobs, callback=callback)
    (facts,) = callback.facts
    assert (facts["points"], facts["bits"], facts["done"]) == (300, 6, 0)
    assert facts["recipe"]["outer"] == len(callback.records)
    assert [record["outer"] for record in callback.records] == list(range(1, len(callback.records) + 1))
    assert callback.records == [record for record in method.history_ if record["outer"]]
    assert all(record["seconds"] >= 0 for record in method.history_)
    shown = capsys.readouterr().err
    assert "adsh: 300 items" in shown
    total = len(callback.records)
    assert name == "lsh" or f"iteration {total}/{total}  loss" in shown
    assert bool(callback.phases) == (name not in DEEP)


def test_nothing_is_shown_where_nobody_looks(blobs, capsys):
    create("itq", bits=4).fit(*blobs)
    assert capsys.readouterr().err == ""


def test_a_method_is_saved_as_it_is_fitted(blobs, tmp_path):
    import adsh
    from adsh.errors import FolderError

    fitted = create("itq", bits=4).fit(*blobs, save_to=tmp_path / "m")
    assert adsh.load(tmp_path / "m").history_ == fitted.history_
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(FolderError, match="holds other files"):
        create("itq", bits=4).fit(*blobs, save_to=tmp_path / "other")
