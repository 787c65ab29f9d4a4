"""No command, log line or answer shows the password of a database, whatever it is given where."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import adsh as adsh_library
from adsh.client import Client, ServiceError
from tests import forked
from tests.index import stores
from tests.index.postgres_server import PASSWORD, QUOTED, missing

from .test_index import TRAIN, photos

__all__ = ["photos"]

SECRETS = (PASSWORD, QUOTED, "geheim")
GIVEN = "postgresql://me:geheim@127.0.0.1:1/x"
COMMANDS = [
    *(("serve", GIVEN), ("serve", "m", GIVEN), ("serve", "m", "index", GIVEN), ("serve", "m", "--images", GIVEN)),
    *(("index", verb, GIVEN) for verb in ("info", "verify", "compact", "remove", "build", "add", "copy", "nonsense")),
    *(("index", verb, GIVEN, GIVEN) for verb in ("add", "copy", "remove", "info")),
    ("index", "add", GIVEN, "m", "--model", GIVEN),
    *(("search", GIVEN), ("search", GIVEN, GIVEN), ("search", GIVEN, "a.jpg", "--model", GIVEN)),
    *((verb, GIVEN) for verb in ("info", "evaluate", "encode", "features", "export", "train", "compare", "demo")),
    ("train", "digits", "--bits", GIVEN),
    *(("data", GIVEN), ("data", "check", GIVEN), ("reproduce", GIVEN), ("doctor", GIVEN), (GIVEN,)),
    ("index", "info", "milvus://root:geheim@127.0.0.1:1/x?token=geheim"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: " ".join(words).replace(GIVEN, "URL"))
def test_an_error_shows_no_password(adsh, command):
    """`adsh serve URL` took it for a model's folder, and repeated it whole."""
    for flags in ((), ("--json",)):
        ended = adsh(*command, *flags)
        assert ended.status != 0 or command[0] == "demo"
        assert not [secret for secret in SECRETS if secret in ended.out + ended.err], ended.err


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_what_succeeds_shows_no_password(adsh, photos, tmp_path):
    """Success messages, JSON, the page of a search and the notes in the index name the location without it."""
    try:
        uri, copied = (stores.place("postgres", None).location for _ in range(2))
        assert adsh(*TRAIN, "--no-index").status == 0
        image = next((tmp_path / "new").rglob("*.jpg"))
        commands: list[tuple[object, ...]] = [
            ("index", "build", uri, "--model", "m"),
            ("index", "add", uri, "new"),
            ("index", "remove", uri, "cat/60.jpg"),
            *(("index", verb, uri) for verb in ("info", "verify", "compact")),
            ("index", "copy", uri, "folder"),
            ("index", "copy", uri, copied),
            ("search", uri, image, "--html", "found.html"),
        ]
        shown = ""
        for command in commands:
            for flags in ((), ("--json",)):
                ended = adsh(*command, *flags)
                assert ended.status == 0 or ("remove" in command and flags), (command, ended.err)
                shown += ended.out + ended.err
        for name in ("folder", uri, copied):
            with adsh_library.open_index(name) as opened:
                shown += str(opened.info())
        shown += Path("found.html").read_text()
        assert "postgresql://postgres@127.0.0.1" in shown
        assert not [secret for secret in SECRETS if secret in shown], shown
    finally:
        stores.stop()


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_service_shows_no_password(adsh, photos, tmp_path):
    """Its first lines did."""
    try:
        uri = stores.place("postgres", None).location
        assert adsh(*TRAIN, "--no-index").status == 0
        assert adsh("index", "build", uri, "--model", "m").status == 0
        for flags in (["--json"], []):
            command = [sys.executable, "-m", "adsh", "serve", "m", uri, "--port", "0", *flags]
            log = Path("log.jsonl")
            with log.open("wb") as errors:
                server = forked.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
            lines = [server.stdout.readline()]
            while "images" not in lines[-1]:
                lines.append(server.stdout.readline())
            if flags:
                with Client(json.loads("".join(lines) + "}")["url"]) as client:
                    code = "00" * (client.info()["bits"] // 8)
                    answers = [json.dumps(client.info()), json.dumps(client.search(code=code))]
                    for wrong in ({"key": "none"}, {"code": "zz"}, {"code": code, "filter": {"a": {"b": 1}}}):
                        with pytest.raises(ServiceError) as refused:
                            client.search(**wrong)
                        answers.append(str(refused.value))
            with server:
                server.terminate()
                lines += server.stdout.readlines()
                server.wait(40)
            shown = "".join(lines) + log.read_text() + "".join(answers if flags else [])
            assert not [secret for secret in SECRETS if secret in shown], shown
            assert "postgresql://postgres@127.0.0.1" in shown
    finally:
        stores.stop()


def test_the_client_shows_no_password():
    with pytest.raises(ServiceError) as refused:
        Client("http://me:geheim@127.0.0.1:9", timeout=2).info()
    assert "geheim" not in str(refused.value)
    with pytest.raises(ValueError, match="is not the address of a service") as wrong:
        Client("ftp://me:geheim@host")
    assert "geheim" not in str(wrong.value)
