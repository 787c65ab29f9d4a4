"""What a terminal is sent: bars, lines elsewhere, and nothing that a stranger's text makes it do."""

from __future__ import annotations

import io
import json
import sys

import pytest

from adsh.cli.reproduce import _Bar
from adsh.cli.show import as_json, facts, table
from adsh.experiments.cell import Cell
from adsh.utils.progress import say


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Standard error, from the call on, is a terminal that keeps what it is sent."""

    def create() -> Terminal:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return create


def test_cells_of_an_experiment_are_a_bar_on_a_terminal_and_lines_elsewhere(terminal, monkeypatch, capsys):
    cell = Cell("itq", 24, 1)
    screen, bar = terminal(), _Bar()
    bar(0, 4, None)
    bar(1, 4, cell)
    bar.close()
    assert "cell 1/4" in screen.getvalue()
    assert "24 bits, seed 1" in screen.getvalue()
    monkeypatch.undo()
    lines = _Bar()
    for done in (0, 2, 4):
        lines(done, 4, cell if done else None)
    said = "adsh: cell 2/4: ITQ, 24 bits, seed 1, 0:00 left\nadsh: cell 4/4: ITQ, 24 bits, seed 1\n"
    assert capsys.readouterr().err == said


def test_keys_and_metadata_of_strangers_are_shown_and_not_acted_on(capsys):
    """A key may clear the screen, set its title, or write right to left."""
    key = "a\x1b[2J\x1b]0;title\x07\x9b2J\x7f\u202eé"
    facts({"key": key})
    table(("key", "class"), [(key, key)])
    say(f"there is no item with the key {key}")
    as_json({"key": key})
    out, err = capsys.readouterr()
    assert not any(0x7F <= ord(one) <= 0x9F or (ord(one) < 32 and one != "\n") or one == "\u202e" for one in out + err)
    assert "\\u001b[2J" in err
    assert "é" in out
    assert json.loads(out[out.index("{") :])["key"] == key
