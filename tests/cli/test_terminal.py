"""What a person sees on a terminal, which a pipe does not: bars, and what was chosen."""

from __future__ import annotations

import io
import sys

import pytest

from adsh.cli.reproduce import _Bar
from adsh.cli.show import ReadingBar, TrainingBar
from adsh.experiments.cell import Cell


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    """Standard error, from the call on, is a terminal that keeps what it is sent."""

    def made() -> Terminal:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "120")
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return made


FACTS = {
    "done": 2, "recipe": {"outer": 5}, "items": "images", "device": "cpu (there is no GPU)",
    "weights": "weights of ours", "points": 1234, "rows": 3, "bits": 24,
}  # fmt: skip


def test_training_shows_what_was_chosen_and_a_bar(terminal):
    screen, bar = terminal(), TrainingBar()
    bar.on_start(FACTS)
    bar.on_iteration({"outer": 3, "loss": 0.5, "rows": 7, "seconds": 1.0, "items_per_second": 100.0})
    bar.on_phase("writing")
    bar.close()
    text = screen.getvalue()
    for said in ("device cpu (there is no GPU)", "weights of ours", "1,234 images, 3 label sets, 24 bits",
                 "going on after outer iteration 2 of 5", "iteration 3/5", "writing"):  # fmt: skip
        assert said in text, said
    assert bar.done == 3


def test_reading_shows_a_bar_that_ends_with_the_last_item(terminal):
    screen, bar = terminal(), ReadingBar("putting in")
    bar(10, 40)
    assert bar._bar is not None
    bar(40, 40)
    assert bar._bar is None
    assert "putting in 40/40" in screen.getvalue()


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


def test_elsewhere_a_line_comes_now_and_then(monkeypatch, capsys):
    monkeypatch.setattr("adsh.cli.show._QUIET", -1.0)
    reading, training = ReadingBar(), TrainingBar()
    reading(3, 9)
    training.on_start(FACTS)
    training.on_iteration({"outer": 4, "loss": 0.5, "rows": 7, "seconds": 1.0, "items_per_second": 100.0})
    said = capsys.readouterr().err
    assert "adsh: reading 3/9\n" in said
    assert "adsh: iteration 4/5  loss 0.5000" in said
