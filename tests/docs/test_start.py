"""The Start page, from top to bottom, in an empty folder, as a newcomer would."""

from __future__ import annotations

import json
import shlex

from .blocks import COMMANDS, DOCS, PROGRAMS, SHOWN, adsh, blocks_of, run


def test_the_commands_of_the_start_page_work_one_after_the_other(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(DOCS / "tutorial/start.md")
    assert len([block for block in blocks if block.reason]) == 2  # the install, and the service
    for block in blocks:
        if block.reason is None and block.language not in SHOWN:
            assert block.language in (*COMMANDS, *PROGRAMS)
            run(block, {"__name__": "__main__"})
    said = capsys.readouterr().out
    assert "all is well" in said
    assert (tmp_path / "found.html").is_file()
    assert (tmp_path / "photos-48bits/report/report.html").is_file()

    # what the page promises: the search finds images, also those that were added
    assert adsh(shlex.split("index info photos-48bits/index --json")) == 0
    assert json.loads(capsys.readouterr().out)["items"] == 51
    assert adsh(shlex.split("search photos-48bits/index new-photos/square/02.png -k 51 --json")) == 0
    assert '"new/square/02.png"' in capsys.readouterr().out
