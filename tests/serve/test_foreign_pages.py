"""What pages of other sites may do without a token, what answers tell of the server, and how its failures look."""

from __future__ import annotations

import json

import pytest

from adsh.errors import FolderError, ServerError
from adsh.serve.http import info

from .conftest import png

IMAGE = "/v1/items/red/3 é.png/image"


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "null"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:1234"},
    ],
)
def test_a_page_of_another_site_is_refused_without_a_token(start, artifacts, headers):
    api = start(images=artifacts.photos)
    answers = [
        api.get(IMAGE, headers=headers),
        api.post("/v1/encode", files={"image": png()}, headers=headers),
        api.delete("/v1/items/red/3 é.png", headers=headers),
        api.post("/v1/search", content=b'{"code":"a1b2c3"}', headers={"content-type": "text/plain", **headers}),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert "page of another site" in answers[0].json()["detail"]
    assert api.get("/", headers=headers).status_code == 200  # a link to the page


def test_the_own_page_and_programs_are_answered(start, artifacts):
    api = start(images=artifacts.photos, cors=["https://a.example"])
    own = ({}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}, {"origin": "http://localhost"})
    for headers in (*own, {"sec-fetch-site": "cross-site", "origin": "https://a.example"}):
        answer = api.get(IMAGE, headers=headers)
        assert answer.status_code == 200, headers
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    token = {"authorization": "Bearer t", "sec-fetch-site": "cross-site"}
    assert start(token="t").get("/v1/info", headers=token).status_code == 200
    behind_proxy = start(only_local=False)
    assert behind_proxy.get("/v1/info", headers={"origin": "https://public.example"}).status_code == 200
    assert behind_proxy.get("/v1/info", headers={"sec-fetch-site": "cross-site"}).status_code == 403


@pytest.mark.parametrize(
    "condition",
    [
        {"ge": "/"}, {"lt": "0"}, {"gt": ""}, {"eq": "/tmp/a"}, "/tmp/a", {"in": ["a", "/tmp"]}, {"ne": "/tmp"},
        {"not_in": ["/tmp"]}, {"all": ["/tmp"]}, {"all": [{"ge": "/"}, {"lt": "0"}]}, {"all": []},
    ],
)  # fmt: skip
def test_a_hidden_path_cannot_be_guessed_through_a_filter(api, condition):
    """It could, letter by letter, by `ge` and `lt`."""
    for field in ("file", "root", "source"):
        for body in ({"code": "a1b2c3"}, {"key": "red/3 é.png"}):
            answer = api.post("/v1/search", json={**body, "filter": {field: condition}})
            assert (answer.status_code, "are hidden" in answer.json()["detail"]) == (422, True)
        form = {"filter": json.dumps({field: condition})}
        assert api.post("/v1/search", files={"image": png()}, data=form).status_code == 422


def test_fields_of_these_names_without_paths_are_filtered_as_before(api):
    api.put("/v1/items/a", json={"code": "a1b2c3", "metadata": {"source": "coco"}})
    for condition in ("coco", {"eq": "coco"}, {"in": ["coco", "other"]}):
        found = api.post("/v1/search", json={"code": "a1b2c3", "filter": {"source": condition}}).json()["matches"]
        assert [match["key"] for match in found] == ["a"]


def test_info_is_short_whatever_is_stored(api):
    """202 MB and 27 s, where every item had fields of its own."""
    long = {"x" * 5000: 1, "text": "y" * 5000}
    items = [
        {"key": f"k{at}", "code": "a1b2c3", "metadata": {f"field {at}/{n}": f"{n}" * 100 for n in range(40)} | long}
        for at in range(100)
    ]
    for at in range(0, 100, 20):
        assert api.post("/v1/items", json={"items": items[at : at + 20]}).status_code == 200
    answer = api.get("/v1/info")
    assert len(answer.content) < 400_000
    said = answer.json()
    assert said["fields_truncated"] is True
    assert 50 < len(said["fields"]) <= info._FIELDS
    assert all(len(name) <= info._NAME for name in said["fields"])
    assert all(len(json.dumps(one["metadata"])) <= info._EXAMPLE_BYTES for one in said["examples"])


def test_short_fields_are_not_called_truncated(api):
    assert api.get("/v1/info").json()["fields_truncated"] is False


def test_a_full_disk_is_answered_with_507(api):
    """It was 500. The index of this test may not grow by a page."""
    db = api.service.index._store._db
    db.execute(f"PRAGMA max_page_count={db.execute('PRAGMA page_count').fetchone()[0]}")
    big = {"items": [{"key": f"k{at}", "code": "a1b2c3", "metadata": {"a": "x" * 9000}} for at in range(5)]}
    answer = api.post("/v1/items", json=big)
    assert (answer.status_code, "disk is full" in answer.json()["detail"]) == (507, True)
    assert api.post("/v1/search", json={"code": "a1b2c3"}).status_code == 200


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ServerError("the connection to postgresql://x was lost"), 503),
        (ServerError("no space is left on postgresql://x"), 507),
        (OSError(28, "No space left on device"), 507),
        (FolderError("/home/x is damaged"), 500),
    ],
)
def test_a_lost_database_is_answered_with_503(api, monkeypatch, error, status):
    def fail(*_, **__):
        raise error

    for name in ("search", "get", "add", "remove"):
        monkeypatch.setattr(api.service.index, name, fail)
    answers = [
        api.post("/v1/search", json={"code": "a1b2c3"}),
        api.get("/v1/items/a"),
        api.put("/v1/items/a", json={"code": "a1b2c3"}),
        api.delete("/v1/items/a"),
    ]
    assert [answer.status_code for answer in answers] == [status] * 4
    assert not any("postgresql" in answer.text or "/home" in answer.text for answer in answers)


def test_a_log_removed_under_the_service_is_noticed(api):
    """What is written afterwards goes to a file without a name."""
    assert api.put("/v1/items/a", json={"code": "a1b2c3"}).status_code == 201
    assert api.get("/readyz").status_code == 200
    (api.index_folder / "index.db-wal").unlink()
    assert api.get("/readyz").status_code == 503
    assert api.put("/v1/items/b", json={"code": "a1b2c3"}).status_code == 503
