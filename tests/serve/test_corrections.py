"""Corrections over HTTP: they need the token, are applied at once, and are listed and undone."""

from __future__ import annotations

KEYS = ["red/0 é.png", "red/1 é.png"]


def test_items_are_corrected_listed_and_the_correction_undone(start):
    api = start(token="t")
    body = {"items": [{"key": KEYS[0], "labels": ["lynx"]}, {"key": KEYS[1], "wrong": True}], "who": "Kim"}
    for method, path, values in (
        ("POST", "/v1/corrections", body), ("GET", "/v1/corrections", None), ("DELETE", "/v1/corrections/1", None),
    ):  # fmt: skip
        assert api.request(method, path, json=values).status_code == 401
    api.headers["Authorization"] = "Bearer t"
    before = [api.get(f"/v1/items/{key}").json() for key in KEYS]
    created = api.post("/v1/corrections", json=body).json()
    assert (created["number"], created["who"]) == (1, "Kim")
    assert [item["before"] for item in created["items"]] == [["red"], ["red"]]
    assert api.get(f"/v1/items/{KEYS[0]}").json()["metadata"]["class"] == "lynx"
    assert "class" not in api.get(f"/v1/items/{KEYS[1]}").json()["metadata"]
    assert api.get("/v1/corrections").json() == {"corrections": [created]}
    found = api.post("/v1/search", json={"key": KEYS[0], "k": 1, "filter": {"class": "lynx"}}).json()
    assert [match["key"] for match in found["matches"]] == [KEYS[0]]
    assert api.delete("/v1/corrections/1").json() == created
    assert [api.get(f"/v1/items/{key}").json() for key in KEYS] == before
    assert api.get("/v1/corrections").json() == {"corrections": []}
    assert api.delete("/v1/corrections/1").status_code == 422


def test_an_item_gets_the_code_of_its_labels_where_the_model_has_one(start):
    api = start()
    green = api.service.encoder.code_for(["green"])
    api.post("/v1/corrections", json={"items": [{"key": KEYS[0], "labels": ["green"]}]})
    item = api.get(f"/v1/items/{KEYS[0]}").json()
    assert (item["code"], item["metadata"]["class"]) == (green.hex(), "green")


def test_what_is_no_correction_is_refused(api):
    for wrong in (
        {"items": []},
        {"items": [{"key": KEYS[0]}]},
        {"items": [{"key": KEYS[0], "labels": ["a"], "wrong": True}]},
        {"items": [{"key": KEYS[0], "labels": ["a"]}] * 2},
        {"items": [{"key": "nobody", "labels": ["a"]}]},
        {"items": [{"key": KEYS[0], "labels": ["x" * 201]}]},
    ):
        answer = api.post("/v1/corrections", json=wrong)
        assert answer.status_code == 422, wrong
        assert "\n" not in answer.json()["detail"]
    assert api.delete("/v1/corrections/0").status_code == 422
    assert api.get("/v1/corrections").json() == {"corrections": []}
