"""What people try without reading: -o, -V, --k and --top-k, completion of shells; and what exit statuses mean."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from typer.main import get_command

from adsh.cli.app import app
from adsh.errors import (
    EXIT_FAILURE,
    EXIT_MISTAKE,
    AdshError,
    BusyError,
    ExportError,
    FolderError,
    InputError,
    MissingExtraError,
    SearchTimeoutError,
    ServerError,
)


def adsh(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "adsh", *arguments],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def flags(*command):
    found = get_command(app)
    for name in command:
        found = found.commands[name]
    return {flag for parameter in found.params for flag in getattr(parameter, "opts", ())}


def test_every_out_is_o_too():
    commands = [name for name in get_command(app).commands if "--out" in flags(name)]
    assert len(commands) >= 8
    assert [name for name in commands if "-o" not in flags(name)] == []


def test_matches_are_counted_by_any_of_three_names():
    assert {"-k", "--k", "--top-k"} <= flags("search")


def test_the_version_is_short_too():
    assert adsh("-V").stdout == adsh("--version").stdout
    assert adsh("-V").stdout.startswith("adsh ")


@pytest.mark.parametrize(
    ("shell", "typed"),
    [
        ("bash", {"COMP_WORDS": "adsh tr", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "adsh tr"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "adsh tr", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_shells_get_completions(shell, typed):
    done = adsh(**typed, _ADSH_COMPLETE=f"complete_{shell}")
    assert "train" in done.stdout
    assert "serve" not in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(tmp_path):
    """The script that bash is given, in a real bash."""
    (tmp_path / "adsh").write_text(f'#!/bin/sh\nexec {sys.executable} -m adsh "$@"\n')
    (tmp_path / "adsh").chmod(0o755)
    script = adsh(_ADSH_COMPLETE="source_bash").stdout
    assert "complete" in script
    done = subprocess.run(
        ["bash", "-c", f"{script}\nCOMP_WORDS=(adsh sea); COMP_CWORD=1; _adsh_completion adsh; echo ${{COMPREPLY[@]}}"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["search"]


def test_errors_know_whose_they_are():
    for error in (AdshError, InputError, FolderError, MissingExtraError):
        assert error.exit_status == EXIT_MISTAKE == 2
    for error in (BusyError, SearchTimeoutError, ServerError, ExportError):
        assert error.exit_status == EXIT_FAILURE == 1


def test_a_server_that_cannot_be_reached_is_no_mistake():
    pytest.importorskip("psycopg")
    done = adsh("index", "info", "postgresql://127.0.0.1:9/nothing?connect_timeout=1")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
