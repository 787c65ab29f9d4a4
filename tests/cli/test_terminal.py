"""What `adsh reproduce` shows on a terminal, and elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from adsh.cli.reproduce import _Bar
from adsh.experiments.cell import Cell


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
