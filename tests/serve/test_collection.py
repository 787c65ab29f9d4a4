"""The collection over HTTP and through the client: listing, counting, changes in place, many queries at once."""

from __future__ import annotations

import asyncio
import json

import pytest

from adsh.client import AsyncClient, Client, ServiceError

RED = {"class": "red"}


def keys_of(api, **query):
    keys, cursor = [], ""
    while cursor is not None:
        page = api.get("/v1/items", params={**query, **({"cursor": cursor} if cursor else {})}).json()
        keys += [item["key"] for item in page["items"]]
        cursor = page["cursor"]
    return keys


def test_items_are_listed_page_by_page_and_counted(api):
    every = keys_of(api, limit=5)
    assert len(every) == 36
    assert every == sorted(every)
    red = keys_of(api, limit=5, filter=json.dumps(RED))
    assert red == [key for key in every if key.startswith("red/")]
    assert api.post("/v1/count", json={"filter": {"$or": [RED, {"class": "blue"}]}}).json() == {"items": 24}
    first = api.get("/v1/items", params={"limit": 1}).json()["items"][0]
    assert "file" not in first["metadata"]  # no paths of the server
    for wrong in ({"limit": 0}, {"filter": "[1]"}, {"filter": "{"}, {"filter": '{"file": {"ge": "/"}}'}):
        assert api.get("/v1/items", params=wrong).status_code == 422, wrong
    hidden = {"$or": [RED, {"$or": [{"file": {"ge": "/home"}}]}]}  # would tell of paths by what it finds
    for path in ("/v1/count", "/v1/remove", "/v1/search"):
        answer = api.post(path, json={"filter": hidden, **({"code": "a1b2c3"} if path == "/v1/search" else {})})
        assert (answer.status_code, "absolute paths" in answer.json()["detail"]) == (422, True), path


def test_metadata_is_patched_in_place(api):
    key = "red/0 é.png"
    before = api.get(f"/v1/items/{key}").json()
    patched = api.patch(f"/v1/items/{key}", json={"metadata": {"class": "rose", "number": None, "seen": [1]}})
    assert patched.status_code == 200
    assert patched.json() == {**before, "metadata": {"class": "rose", "seen": [1]}}
    assert api.get(f"/v1/items/{key}").json() == patched.json()
    assert api.post("/v1/count", json={"filter": {"class": "rose"}}).json() == {"items": 1}
    assert api.patch("/v1/items/nobody", json={"metadata": {"a": 1}}).status_code == 404
    assert api.patch(f"/v1/items/{key}", json={"metadata": [1]}).status_code == 422
    found = api.post("/v1/search", json={"key": key, "k": 1, "filter": {"class": "rose"}}).json()
    assert [match["key"] for match in found["matches"]] == [key]


def test_items_are_removed_by_a_filter(api):
    assert api.post("/v1/remove", json={"filter": RED}).json() == {"removed": 12}
    assert len(keys_of(api)) == 24
    refused = api.post("/v1/remove", json={"filter": {}})
    assert (refused.status_code, "is met by every item" in refused.json()["detail"]) == (422, True)
    assert len(keys_of(api)) == 24


def test_many_queries_are_answered_together_or_not_at_all(api):
    keys = [f"red/{n} é.png" for n in range(5)]
    queries = [*({"key": key} for key in keys), {"code": "a1b2c3"}]
    answers = api.post("/v1/search/batch", json={"queries": queries, "k": 3, "filter": RED}).json()["answers"]
    alone = [api.post("/v1/search", json={**query, "k": 3, "filter": RED}).json() for query in queries]
    assert answers == alone
    without = api.post("/v1/search/batch", json={"queries": queries[:5], "include_self": False}).json()["answers"]
    assert not any(key in [match["key"] for match in one["matches"]] for key, one in zip(keys, without, strict=True))
    assert api.post("/v1/search/batch", json={"queries": [{"key": "nobody"}, *queries]}).status_code == 404
    for wrong in ([], [{"key": "a", "code": "00"}], [{"code": "a1b2c3"}] * 257, [{}]):
        assert api.post("/v1/search/batch", json={"queries": wrong}).status_code == 422


def test_the_client_has_all_of_it(live):
    with Client(live.url, token="s3cret") as client:
        assert len(list(client.items(page=10))) >= 36
        assert client.count(RED) == 12
        client.add("temporary", code="a1b2c3", metadata={"class": "temp", "n": 1})
        assert client.update("temporary", {"n": None, "m": 2})["metadata"] == {"class": "temp", "m": 2}
        assert [one["matches"][0]["key"] for one in client.search_many(keys=["temporary"], codes=["a1b2c3"], k=1)] == [
            "temporary", "temporary",
        ]  # fmt: skip
        assert client.remove_where({"class": "temp"}) == 1
        assert client.get("temporary") is None


def test_the_client_for_asyncio_has_several_requests_under_way(live):
    async def ask():
        async with AsyncClient(live.url, token="s3cret", connections=4) as client:
            assert await client.ready()
            found = await asyncio.gather(*(client.search(key=f"red/{n} é.png", k=1) for n in range(12)))
            listed = [item["key"] async for item in client.items(RED, page=5)]
            with pytest.raises(ServiceError, match="nobody"):
                await client.search(key="nobody")
            return found, listed, await client.count(RED)

    found, listed, count = asyncio.run(ask())
    assert all(one["matches"][0]["distance"] == 0 for one in found)
    assert len(listed) == count == 12
