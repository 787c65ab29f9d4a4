"""The same commands with an address instead of a folder; no password is ever printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.index import stores
from tests.index.postgres_server import PASSWORD, QUOTED, missing

from .conftest import Ended
from .test_index import TRAIN, photos

__all__ = ["photos"]

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module", autouse=True)
def _servers():
    yield
    stores.stop()


@pytest.fixture
def done(adsh):
    """adsh(…) that must succeed, and show no password."""

    def run(*arguments: object) -> Ended:
        ended = adsh(*arguments)
        assert ended.status == 0, ended.err
        for secret in (PASSWORD, QUOTED):
            assert secret not in ended.out + ended.err
        return ended

    return run


def test_an_index_on_a_server_is_used_like_a_folder(done, refused, photos):
    uri = stores.place("postgres", None).location
    assert "there is no index at postgresql://postgres@127.0.0.1" in refused("index", "info", uri)
    done(*TRAIN, "--no-index")
    built = done("index", "build", uri, "--model", "m", "--json").json
    assert (built["new"], built["index"]) == (54, uri.replace(f":{QUOTED}", ""))
    assert done("index", "add", uri, "new", "--by-image", "--json").json["new"] == 10
    assert done("index", "add", uri, "new", "--model", "m", "--json").json["already"] == 10
    assert "next" in done("index", "add", uri, "new").out
    summary = done("index", "info", uri, "--json").json
    assert (summary["items"], summary["vector_dimensions"], summary["model_folder"]) == (
        64,
        64,
        str(photos.parent / "m"),
    )
    found = done("search", uri, "new/cat/60.jpg", "-k", 5, "--html", "page.html", "--json").json
    assert found["queries"][0]["matches"][0]["key"] == "cat/60.jpg"
    assert QUOTED not in Path("page.html").read_text(encoding="utf-8")
    done("index", "build", "folder", "--model", "m")
    done("index", "add", "folder", "new", "--by-image")
    local = done("search", "folder", "new/cat/60.jpg", "-k", 5, "--json").json
    assert local["queries"] == found["queries"]
    assert done("index", "remove", uri, "cat/60.jpg", "nobody", "--json").json["removed"] == 1
    assert "is intact: 63 items" in done("index", "verify", uri).out
    assert done("index", "compact", uri, "--json").json["items"] == 63
    copied = done("index", "copy", uri, "copied", "--json").json
    assert (copied["new"], copied["vectors"]) == (63, True)
    assert "63 skipped" in done("index", "copy", uri, "copied").out
    back = stores.place("postgres", None).location
    assert done("index", "copy", "copied", back, "--json").json["new"] == 63


def test_a_server_that_is_not_there_is_reported_in_one_line(refused):
    for command in (("index", "info"), ("index", "verify"), ("search",), ("index", "copy")):
        more = ("x.jpg",) if command == ("search",) else ("to",) if command[-1] == "copy" else ()
        said = refused(
            *command, "postgresql://me:geheim@127.0.0.1:1/x", *more, status=2 if command == ("search",) else 1
        )
        assert "geheim" not in said
        assert "127.0.0.1" in said or command == ("search",)
    assert "no kind of index" in refused("index", "info", "redis://me:geheim@host/1")
