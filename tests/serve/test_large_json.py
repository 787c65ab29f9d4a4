"""Bodies of JSON that would take long to validate are refused by counting, and large ones never delay others."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsh.serve.engine.limits import Limits
from adsh.serve.engine.problems import Problem
from adsh.serve.engine.service import count_values
from adsh.serve.http.bodies import read_body
from adsh.serve.http.item_batch import Batch, parse_batch
from adsh.serve.http.json_limits import JsonLimits, batch_limits, check_json, has_more_values

HEADERS = {"content-type": "application/json"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='a",[{\\é'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet='a",\\'), inner),
)


def items(count: int) -> bytes:
    return b'{"items":[' + b",".join([b"{}"] * count) + b"]}"


@pytest.mark.parametrize(
    ("path", "body", "status", "text"),
    [
        ("/v1/items", items(400_000), 422, "more than 256,000 values"),
        ("/v1/items", items(40_000), 422, "40,000 items: send at most 1,000 at a time"),
        ("/v1/items", items(5_000), 422, "5,000 items: send at most 1,000 at a time"),
        ("/v1/items", items(900), 422, "items.0.code is missing"),
        ("/v1/items", b'{"items":1,' + b",".join(b'"a%d":1' % at for at in range(9000)) + b"}", 422, "a0 is not known"),
        ("/v1/search", b'{"code":"a1b2c3","filter":{"a":{"in":[%s]}}}' % (b"1," * 12_000 + b"1"), 422, "10,000 values"),
        ("/v1/search", b'{"code":"a1b2c3","key":"%s"}' % (b"x" * (1 << 20)), 413, "more than 1,048,576 bytes"),
        ("/v1/search", b"{%s}" % b",".join(b'"a%d":1' % at for at in range(9000)), 422, "a0 is not known here"),
        ("/v1/search", b"[" * 9000 + b"]" * 9000, 422, "not JSON"),
    ],
)
def test_a_large_body_is_refused_with_one_reason_at_once(api, path, body, status, text):
    """16.8 MB of empty items took 75 s and 12 GB: an error was described for each."""
    started = time.monotonic()
    answer = api.post(path, content=body, headers=HEADERS)
    assert (answer.status_code, text in answer.json()["detail"]) == (status, True), answer.text
    assert len(answer.json()["detail"]) < 300
    assert time.monotonic() - started < 5


def test_a_search_of_more_than_a_mebibyte_is_not_read_to_its_end(api):
    read = []

    def pieces():
        for _ in range(100):
            read.append(1)
            yield b" " * 65_536

    assert api.post("/v1/search", content=pieces(), headers=HEADERS).status_code == 413
    single = b'{"code":"a1b2c3","metadata":{"a":"%s"}}' % (b"x" * (1 << 20))
    assert api.put("/v1/items/a", content=single, headers=HEADERS).status_code == 413


@pytest.mark.parametrize(
    ("first", "piece", "reason"),
    [(b'{"items":[', b"{}," * 10_000, "256,000 values"), (b'{"items":[{"key":"', b"{}," * 10_000, "16,777,216 bytes")],
)
def test_a_flood_of_values_is_not_read_to_its_end(first, piece, reason):
    """Up to 16 MiB were, and counted in a process; commas inside a text are no values."""
    pieces = []

    async def receive():
        pieces.append(piece if pieces else first)
        return {"type": "http.request", "body": pieces[-1], "more_body": True}

    with pytest.raises(Problem, match=reason):
        asyncio.run(read_body(receive, batch_limits(16 << 20, 1000)))
    assert (len(pieces) < 30) == (reason == "256,000 values")


def test_a_large_batch_is_stored_as_a_small_one_is(api):
    tags = ['a, "quoted" [text] {é}\\', 1 << 70, None, 1.5] * 20
    batch = [{"key": f"k/{at} é", "code": f"{at:06x}", "metadata": {"tags": tags, "at": at}} for at in range(200)]
    batch[7]["metadata"] = None
    body = json.dumps({"items": batch}, ensure_ascii=False).encode()
    assert len(body) > 1 << 17
    assert api.post("/v1/items", content=body, headers=HEADERS).json() == {"new": 200, "replaced": 0}
    for one in (batch[0], batch[7], batch[199]):
        assert json.loads(api.get(f"/v1/items/{one['key']}").text)["code"] == one["code"]
        assert api.service.index.get([one["key"]])[0].metadata == one["metadata"]
    wrong = json.dumps({"items": [*batch, {"key": "x", "code": "zz"}]}).encode()
    answer = api.post("/v1/items", content=wrong, headers=HEADERS)
    assert (answer.status_code, "items.200.code" in answer.json()["detail"]) == (422, True)


def test_a_batch_is_parsed_in_a_worker_as_it_is_here():
    options = {"bits": 24, "max_bytes": 1 << 20, "max_items": 10}
    header, texts = parse_batch(options, b'{"items":[{"key":"a","code":"a1b2c3","metadata":{"x":"\xc3\xa9"}}]}')
    assert header == {"keys": ["a"], "codes": "a1b2c3", "ends": [len(texts)]}
    assert Batch(["a"], b"", [texts.decode()]).metadata() == [{"x": "é"}]
    assert parse_batch(options, b"{}")[0] == {"status": 422, "detail": "items is missing: add it"}
    assert parse_batch(options, b'{"items":[{"key":"a","code":"a1"}]}')[0]["status"] == 422


@given(VALUES, st.integers(0, 30))
def test_values_are_counted_by_their_commas_and_brackets(value, most):
    """Each value but the first has a comma or a bracket before it; an empty list or object has one too many."""
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        if has_more_values(text.encode(), most):
            assert 2 * count_values(value) > most
        else:
            assert count_values(value) - 1 <= most


def test_a_form_field_of_many_values_is_refused(api):
    from .conftest import png

    answer = api.post("/v1/search", files={"image": png()}, data={"filter": "[" + "1," * 12_000 + "1]"})
    assert (answer.status_code, "filter holds more than 10,000 values" in answer.json()["detail"]) == (422, True)


def test_what_is_no_object_is_left_to_the_validation():
    for body in (b"[" + b"1," * 3000 + b"1]", b"x" * 5000, b'"' + b"," * 5000 + b'"'):
        check_json(body, (), JsonLimits(1 << 20, 10_000))
    with pytest.raises(Problem, match="more than 10 bytes"):
        check_json(b"x" * 11, (), JsonLimits(10, 10))


def test_bodies_of_all_requests_share_a_budget(start):
    """250 half-sent uploads took 5.3 GB."""
    api = start(limits=Limits(max_bodies=1 << 20))
    budget = _budget(api)
    budget.used = (1 << 20) - 100_000  # what others have sent so far
    answer = api.post("/v1/items", content=b" " * 200_000, headers=HEADERS)
    assert (answer.status_code, answer.headers["retry-after"], answer.headers["connection"]) == (429, "5", "close")
    assert "are being received already" in answer.json()["detail"]
    assert budget.used == (1 << 20) - 100_000
    assert api.post("/v1/search", json={"code": "a1b2c3"}).status_code == 200
    budget.used = 0
    assert api.post("/v1/items", content=b" " * 200_000, headers=HEADERS).status_code == 422
    assert api.post("/v1/encode", files={"image": b"x" * 900_000}).status_code == 422
    assert budget.used == 0


def _budget(api):
    from adsh.serve.middleware.security import Guard

    layer = api.app.middleware_stack
    while not isinstance(layer, Guard):
        layer = getattr(layer, "_app", None) or layer.app
    return layer._bodies
