"""The progress display: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import re
import sys

import pytest

from adsh.errors import InputError
from adsh.utils.progress import Progress, ProgressLine

FACTS = {
    "done": 2, "recipe": {"outer": 5}, "items": "images", "device": "cpu (there is no GPU)",
    "weights": "weights of ours", "points": 1234, "rows": 3, "bits": 24,
}  # fmt: skip
RECORD = {"outer": 3, "loss": 0.5, "rows": 7, "seconds": 1.0, "items_per_second": 100.0}


ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    return Terminal()


def test_training_shows_what_was_chosen_and_a_bar(terminal):
    display = Progress(stream=terminal)
    display.on_start(FACTS)
    display.on_iteration(RECORD)
    display.on_phase("writing")
    display.close()
    text = ANSI.sub("", terminal.getvalue())
    for expected in ("device cpu (there is no GPU)", "weights of ours", "1,234 images, 3 label sets, 24 bits",
                     "resuming after outer iteration 2 of 5", "iteration 3/5 ━━━", "loss 0.5000",
                     "100 images/s", "left", "writing"):  # fmt: skip
        assert expected in text, expected
    assert (display.done, display.total) == (3, 5)


def test_a_bar_ends_with_the_last_item(terminal):
    line = ProgressLine("indexing", stream=terminal)
    line(10, 40)
    assert line._bar is not None
    line(40, 40)
    assert line._bar is None
    assert "indexing 40/40" in ANSI.sub("", terminal.getvalue())
    line.close()


def test_without_rich_a_terminal_gets_plain_lines(terminal, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    line = ProgressLine("reading", every=0.0, stream=terminal)
    line(3, 9)
    assert terminal.getvalue().startswith("adsh: reading 3/9")


def test_where_there_is_no_terminal_plain_lines_come_at_intervals():
    stream = io.StringIO()
    display = Progress(every=0.0, stream=stream)
    display.reading(3, 9)
    display.on_start(FACTS)
    display.on_iteration(RECORD)
    first, second = stream.getvalue().splitlines()
    assert first.startswith("adsh: reading 3/9")
    assert second.startswith("adsh: iteration 3/5  loss 0.5000  7 rows  100 images/s")
    rarely = io.StringIO()
    Progress(every=60.0, stream=rarely).reading(3, 9)
    assert rarely.getvalue() == ""


def test_the_time_left_counts_from_the_first_call_not_from_what_came_before(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("adsh.utils.progress.time.monotonic", lambda: now[0])
    stream = io.StringIO()
    line = ProgressLine("indexing", every=0.0, stream=stream)
    now[0] = 300.0  # of training
    line(512, 2048)
    now[0] = 310.0
    line(1024, 2048)
    assert stream.getvalue().splitlines() == ["adsh: indexing 512/2,048", "adsh: indexing 1,024/2,048  0:20 left"]


@pytest.mark.parametrize("choice", ["auto", False])
def test_nothing_is_shown_where_there_is_no_terminal_or_it_is_off(choice):
    stream = Terminal() if choice is False else io.StringIO()
    display = Progress(choice, stream=stream)
    display.on_start(FACTS)
    display.on_iteration(RECORD)
    display.on_features(1, 2)
    display.on_phase("writing")
    display.close()
    assert stream.getvalue() == ""


def test_true_shows_every_iteration_anywhere():
    stream = io.StringIO()
    display = Progress(True, stream=stream)
    display.on_start(FACTS)
    for outer in (3, 4, 5):
        display.on_iteration({**RECORD, "outer": outer})
    assert [f"iteration {outer}/5" in stream.getvalue() for outer in (3, 4, 5)] == [True] * 3
    assert "\r" not in stream.getvalue()


def test_another_value_is_refused():
    with pytest.raises(InputError, match='give "auto", True or False'):
        Progress("always")
