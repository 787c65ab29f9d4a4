"""POST /v1/search and /v1/encode: by code, key and image, the same as the library and the commands give."""

from __future__ import annotations

import asyncio
import io
import threading

import numpy as np
import pytest
from PIL import Image

import adsh
from adsh.search.guess import Guesser
from adsh.serve.engine.limits import Limits
from tests.cli.conftest import adsh as command  # noqa: F401  # a fixture

from .conftest import Blank, png


def by_image(api, data, **fields):
    return api.post("/v1/search", files={"image": ("a.png", data)}, data=fields)


def test_a_search_by_code_is_that_of_the_index(api, artifacts):
    with adsh.open_index(artifacts.index) as index:
        codes = np.frombuffer(bytes.fromhex("a1b2c3"), dtype=np.uint8)[None]
        right = index.search(codes, 5)[0]
        items = index.get(right.keys)
    answer = api.post("/v1/search", json={"code": "a1b2c3", "k": 5}).json()
    assert (answer["code"], answer["bits"], answer["ranking"], answer["reranked"]) == ("a1b2c3", 24, "hamming", False)
    assert [match["key"] for match in answer["matches"]] == right.keys
    assert [match["distance"] for match in answer["matches"]] == right.distances.tolist()
    assert [match["code"] for match in answer["matches"]] == [item.code.hex() for item in items]
    assert [match["metadata"]["class"] for match in answer["matches"]] == [m["class"] for m in right.metadata]


def test_the_route_and_the_short_way_agree(api, monkeypatch):
    """Searches with JSON never reach the route that describes them, unless the short way lets them through."""
    bodies = [
        b'{"code": "a1b2c3", "k": 7, "filter": {"class": "red"}}',
        b'{"key": "red/3 \xc3\xa9.png"}', b'{"key": "nobody"}',
        b'{"code": "a1"}', b'{"k": 0}', b"{", b'{"code": "a1b2c3", "filter": {"a": {"like": 1}}}',
    ]  # fmt: skip

    def answers():
        kinds = ("application/json", "Application/JSON; charset=utf-8")
        given = [api.post("/v1/search", content=b, headers={"content-type": k}) for b in bodies for k in kinds]
        return [(one.status_code, one.json().get("detail") or one.json()) for one in given]

    quick = answers()
    monkeypatch.setattr("adsh.serve.http.fast_search._is_json", lambda scope: False)
    assert answers() == quick
    assert {status for status, _ in quick} == {200, 404, 422}


def test_a_search_by_image_is_that_of_adsh_search(api, artifacts, command):  # noqa: F811  # the name is a fixture, imported for this
    for path in sorted(artifacts.photos.rglob("*.png"))[::7]:
        for flags in ({}, {"rerank": "false"}, {"ranking": "asymmetric"}, {"radius": "3"}):
            answer = by_image(api, path.read_bytes(), k="6", **flags).json()
            words = [f"--{name}={value}" for name, value in flags.items() if name != "rerank"]
            words += ["--no-rerank"] * ("rerank" in flags)
            summary = command(
                "search", artifacts.index, path, "-k", 6, *words, "--model", artifacts.model, "--json"
            ).json
            right = summary["queries"][0]["matches"]
            assert [(m["key"], m["distance"]) for m in answer["matches"]] == [(m["key"], m["distance"]) for m in right]


def test_encode_gives_the_code_of_adsh_encode(api, artifacts, encoder):
    path = next(artifacts.photos.rglob("*.png"))
    answer = api.post("/v1/encode", files={"image": path.read_bytes()}).json()
    model = adsh.load(artifacts.model)
    photos = adsh.data.ResizedDataset(adsh.data.open_source(str(artifacts.photos)), 32)
    at = list(photos.keys).index(str(path.relative_to(artifacts.photos)))
    assert answer["code"] == model.encode(photos.subset(np.array([at])))[0].tobytes().hex()
    assert [value >= 0 for value in answer["outputs"]] == np.unpackbits(
        np.frombuffer(bytes.fromhex(answer["code"]), dtype=np.uint8)
    ).astype(bool).tolist()  # fmt: skip
    assert encoder.bits == answer["bits"] == len(answer["outputs"])


def test_a_key_finds_itself_first_and_orders_ties_by_its_vector(api):
    answer = api.post("/v1/search", json={"key": "red/3 é.png", "k": 3}).json()
    assert answer["reranked"]
    assert answer["matches"][0]["key"] == "red/3 é.png"
    plain = api.post("/v1/search", json={"key": "red/3 é.png", "k": 3, "rerank": False}).json()
    assert not plain["reranked"]


def test_filters_and_radius(api):
    for condition, right in (
        ({"class": "blue"}, {"blue"}),
        ({"class": {"in": ["red", "blue"]}}, {"red", "blue"}),
        ({"class": "none"}, set()),
    ):
        answer = api.post("/v1/search", json={"code": "000000", "k": 36, "filter": condition}).json()
        assert {match["metadata"]["class"] for match in answer["matches"]} == right
    item = api.get("/v1/items/green/0 é.png").json()
    near = api.post("/v1/search", json={"code": item["code"], "radius": 0, "k": 100}).json()["matches"]
    assert near
    assert {match["distance"] for match in near} == {0}


def test_the_guess_is_that_of_the_library_whatever_is_returned(api, artifacts):
    with adsh.open_index(artifacts.index) as index:
        guesser = Guesser(index)
        for path in sorted(artifacts.photos.rglob("*.png"))[::7]:
            key = str(path.relative_to(artifacts.photos))
            code = index.get([key])[0].code
            right = guesser(np.frombuffer(code, np.uint8)[None])
            answers = [
                api.post("/v1/search", json={"code": code.hex(), **more}) for more in ({}, {"k": 1}, {"radius": 3})
            ]
            assert by_image(api, path.read_bytes()).json()["guess"]["label"] == key.split("/")[0]
            for answer in answers:
                assert answer.json()["guess"] == {**right._asdict(), "share": round(right.share, 4)}
            own = api.post("/v1/search", json={"key": key}).json()["guess"]
            assert (own["items"], own["label"]) == (35, key.split("/")[0])
    filtered = api.post("/v1/search", json={"code": "a1b2c3", "filter": {"class": "red"}}).json()
    assert filtered["matches"]
    assert filtered["guess"] is None


def test_an_item_is_left_out_of_its_own_matches(api):
    for more in ({}, {"rerank": False}, {"radius": 24}, {"filter": {"class": {"in": ["red", "blue"]}}}):
        both = [
            api.post("/v1/search", json={"key": "red/3 é.png", "k": k, **more, **own}).json()["matches"]
            for k, own in ((8, {}), (7, {"include_self": False}), (8, {"include_self": True}))
        ]
        assert [match["key"] for match in both[0]].count("red/3 é.png") == 1
        assert both[1] == [match for match in both[0] if match["key"] != "red/3 é.png"]
        assert both[2] == both[0]


def test_the_nearest_distance_is_said_where_a_radius_finds_nothing(api):
    codes = [one["code"] for one in api.post("/v1/search", json={"code": "000000", "k": 36}).json()["matches"]]
    far = f"{int(codes[0], 16) ^ 0xFFFFFF:06x}"
    nearest = api.post("/v1/search", json={"code": far, "k": 1}).json()
    assert nearest["nearest"] is None
    distance = nearest["matches"][0]["distance"]
    assert distance > 0
    for more, right in (
        ({}, distance),
        ({"filter": {"class": {"in": ["red", "green", "blue"]}}}, distance),
        ({"filter": {"class": "none"}}, None),
    ):
        answer = api.post("/v1/search", json={"code": far, "radius": distance - 1, **more}).json()
        assert (answer["matches"], answer["nearest"]) == ([], right)


def test_answers_do_not_reveal_where_files_are(api, artifacts):
    answer = api.post("/v1/search", json={"code": "a1b2c3"})
    assert str(artifacts.photos) not in answer.text
    assert str(artifacts.photos) not in api.get("/v1/items/red/3 é.png").text
    assert str(artifacts.photos.parent) not in api.get("/v1/info").text


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"code": "a1b2"}, "has 4 characters, but 24 bits are 6 hexadecimal digits"),
        ({"code": "a1b2c3d4"}, "has 8 characters"),
        ({"code": "a1b2cx"}, "code='a1b2cx': "),
        ({"code": " a1b2c3 "}, "code="),
        ({"code": 7}, "code=7: "),
        ({"code": "a1b2c3", "include_self": False}, "include_self=false leaves out the item of key: give key"),
        ({"key": "a", "include_self": "no"}, "include_self='no': expected true or false"),
        ({"code": "a1b2c3", "k": 0}, "k=0: expected a whole number from 1: give how many matches to return"),
        ({"code": "a1b2c3", "k": 1001}, "k=1001: at most 1000"),
        ({"code": "a1b2c3", "k": "10"}, "k='10': "),
        ({"code": "a1b2c3", "k": 1.5}, "k=1.5: "),
        ({"code": "a1b2c3", "radius": -1}, "radius=-1: expected a whole number from 0: give how many bits may differ"),
        ({"code": "a1b2c3", "radius": 1, "rerank": True}, "a radius counts bits"),
        ({"code": "a1b2c3", "ranking": "cosine"}, "ranking='cosine'"),
        ({"code": "a1b2c3", "ranking": "asymmetric"}, "search by image"),
        ({"code": "a1b2c3", "rerank": True}, "search by image or key"),
        ({"code": "a1b2c3", "filter": {"class": {"like": "x"}}}, "'like' of 'class' is not a comparison"),
        ({"code": "a1b2c3", "filter": ["class"]}, "filter=['class']: expected conditions on metadata: give an object"),
        ({"code": "a1b2c3", "filter": "cat"}, "filter='cat': expected conditions on metadata: give an object"),
        ({"code": "a1b2c3", "rerank": "x"}, "rerank='x': expected true or false: give one of them"),
        ({"key": ""}, "key='': expected a text of 1 to "),
        ({"code": "a1b2c3", "key": "a"}, "either code or key"),
        ({}, "either code or key"),
        ({"kode": "a1b2c3"}, "kode is not known here"),
        ([], "send a JSON object"),
        ("code", "send a JSON object"),
    ],
)
def test_a_bad_question_gets_one_sentence(api, question, said):
    answer = api.post("/v1/search", json=question)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert "\n" not in answer.json()["detail"]
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"null", b"[" * 100_000])
def test_a_body_that_is_no_json_object(api, body):
    answer = api.post("/v1/search", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422
    assert "JSON" in answer.json()["detail"]


def test_a_number_that_is_none(api):
    answer = api.post(
        "/v1/search", content=b'{"code": "a1b2c3", "k": NaN}', headers={"content-type": "application/json"}
    )
    assert answer.json()["detail"].startswith("k=nan: expected a whole number from 1: give how many")


def test_other_kinds_of_bodies_are_refused(api):
    assert api.post("/v1/search", content=b"code=1", headers={"content-type": "text/plain"}).status_code == 415
    assert api.post("/v1/search").status_code == 415
    assert api.post("/v1/items", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    broken = api.post("/v1/search", content=b"--", headers={"content-type": "multipart/form-data"})
    assert (broken.status_code, "form cannot be read" in broken.json()["detail"]) == (422, True)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"k": "many"}, "k='many': expected a whole number from 1: give"),
        ({"k": "1_0"}, "k='1_0': expected a whole number from 1"),
        ({"k": "5.0"}, "k='5.0': expected a whole number"),
        ({"k": " 5"}, "k=' 5': expected a whole number"),
        ({"k": "+5"}, "k='+5': expected a whole number"),
        ({"k": "٣"}, "k='٣': expected a whole number"),
        ({"k": "9" * 5000}, "expected a whole number"),
        ({"k": "0"}, "k=0: expected a whole number from 1"),
        ({"radius": "3.0"}, "radius='3.0': expected a whole number from 0"),
        ({"radius": "-1"}, "radius=-1: expected a whole number from 0"),
        ({"rerank": "maybe"}, "rerank='maybe': expected true or false"),
        ({"k": "2000"}, "at most 1000"),
        ({"filter": "class=red"}, "filter is not JSON"),
        ({"filter": '"red"'}, "filter="),
        ({"size": "3"}, "size is not known here"),
        ({"ranking": "asymmetric", "radius": "1"}, "a radius counts bits"),
    ],
)
def test_bad_fields_next_to_an_image(api, fields, said):
    answer = by_image(api, png(), **fields)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


@pytest.mark.parametrize("data", [b"", b"hello", png()[:60], b"GIF89a", b"<svg/>", b"%!PS-Adobe-3.0 EPSF"])
def test_what_is_no_image(api, data):
    answer = by_image(api, data)
    assert answer.status_code == 422
    assert "the image is" in answer.json()["detail"]
    assert api.post("/v1/encode", files={"image": data}).status_code == 422


def test_a_form_without_an_image(api):
    answer = api.post("/v1/search", data={"k": "3"}, files={"other": b"x"})
    assert "the field image is missing" in answer.json()["detail"]
    assert "is not known here" in api.post("/v1/encode", files={"image": png()}, data={"k": "3"}).json()["detail"]


def test_an_unknown_key_is_not_found(api):
    answer = api.post("/v1/search", json={"key": "nobody"})
    assert (answer.status_code, "nobody" in answer.json()["detail"]) == (404, True)


def ask_at_once(api, blank, count):
    """Encodes so many images while the network is held up, then lets it go."""
    import httpx2

    blank.go.clear()

    async def ask():
        transport = httpx2.ASGITransport(api.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
            requests = [asyncio.create_task(client.post("/v1/encode", files={"image": png()})) for _ in range(count)]
            queue = api.service.encode_image._network
            while len(queue) + sum(request.done() for request in requests) < count:  # those done were refused
                await asyncio.sleep(0.01)
            blank.go.set()
            return await asyncio.gather(*requests)

    return asyncio.run(ask())


def test_images_that_come_together_go_through_the_network_together(start):
    blank = Blank()
    answers = ask_at_once(start(with_encoder=blank, limits=Limits(max_batch=8)), blank, 24)
    assert {answer.status_code for answer in answers} == {200}
    assert sum(blank.passes) == 24
    assert len(blank.passes) <= 4
    assert max(blank.passes) == 8


def test_a_full_queue_says_when_to_come_back(start):
    blank = Blank()
    answers = ask_at_once(start(with_encoder=blank, limits=Limits(max_queue=4, max_batch=2)), blank, 10)
    refused = [answer for answer in answers if answer.status_code == 429]
    assert sorted(answer.status_code for answer in answers) == [200] * 4 + [429] * 6
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert "try again" in refused[0].json()["detail"]


def test_what_takes_too_long_is_given_up(start):
    blank = Blank()
    api = start(with_encoder=blank, limits=Limits(max_seconds=0.2))
    blank.go.clear()
    answer = api.post("/v1/encode", files={"image": png()})
    blank.go.set()
    assert (answer.status_code, "took longer than 0.2 s" in answer.json()["detail"]) == (504, True)


def test_odd_images_are_encoded_like_their_plain_ones(api):
    plain = by_image(api, png((255, 255, 255))).json()
    for mode, kind in (("L", "PNG"), ("P", "GIF"), ("CMYK", "JPEG"), ("RGBA", "WEBP"), ("1", "PNG")):
        file = io.BytesIO()
        white = {"CMYK": (0, 0, 0, 0), "RGBA": (0, 0, 0, 0)}.get(mode, 255)
        image = Image.new("RGB", (40, 32), "white").convert(mode) if mode == "P" else Image.new(mode, (40, 32), white)
        image.save(file, kind)
        assert by_image(api, file.getvalue()).json()["code"] == plain["code"], mode


def test_a_search_that_takes_too_long_ends_with_a_reason_and_the_others_go_on(api):
    api.service._searches.filtered.seconds = 1e-9
    answer = api.post("/v1/search", json={"code": "a1b2c3", "filter": {"class": "red"}})
    assert answer.status_code == 503
    assert "the search took longer than 1e-09 s and was stopped" in answer.json()["detail"]
    assert api.post("/v1/search", json={"code": "a1b2c3"}).status_code == 200


def test_searches_with_a_filter_wait_for_no_others(api, monkeypatch):
    from adsh.search.searcher import Searcher

    run, held = Searcher.run, threading.Event()

    def slow_radius(self, plan):
        if plan.options.where is None:
            assert held.wait(20)
        return run(self, plan)

    monkeypatch.setattr(Searcher, "run", slow_radius)
    answers = []
    first = threading.Thread(
        target=lambda: answers.append(api.post("/v1/search", json={"code": "a1b2c3", "radius": 9}).status_code)
    )
    first.start()
    try:
        assert api.post("/v1/search", json={"code": "a1b2c3", "filter": {"class": "red"}}).status_code == 200
        assert answers == []
    finally:
        held.set()
        first.join()
    assert answers == [200]
