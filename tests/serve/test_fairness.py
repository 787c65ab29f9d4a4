"""What a flood of hostile requests may cost the others: pauses of the event loop, and shares of its time."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

import adsh
from adsh.index.filters import Filter
from adsh.serve.http import schemas
from adsh.serve.http.schemas import ItemRequest, parse_json
from adsh.serve.middleware.joined_writes import JoinedWrites
from adsh.serve.middleware.refusals import PER_SECOND, PacedRefusals


def answers(app_status, requests):
    """Return when each of some requests that come together is answered."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": app_status})

    async def run():
        paced, times = PacedRefusals(app), []

        async def sent(_):
            times.append(asyncio.get_running_loop().time() - started)

        started = asyncio.get_running_loop().time()
        await asyncio.gather(*(paced({}, None, sent) for _ in range(requests)))
        return times

    return sorted(asyncio.run(run()))


def test_a_flood_of_malformed_requests_is_answered_slowly():
    """Eight senders of them took half of the searches of 32 others."""
    many = int(PER_SECOND) + 100
    times = answers(422, many)
    assert times[0] < 0.2
    assert times[-1] >= 90 / PER_SECOND


@pytest.mark.parametrize("status", [200, 404, 429])
def test_other_answers_wait_for_nothing(status):
    assert answers(status, int(PER_SECOND) + 100)[-1] < 90 / PER_SECOND


def test_no_answer_waits_longer_than_a_second():
    paced = PacedRefusals(None)
    delays = [paced.delay(100.0) for _ in range(5 * int(PER_SECOND))]
    assert delays[: int(PER_SECOND) - 1] == [0.0] * (int(PER_SECOND) - 1)
    assert delays[-1] == max(delays) == pytest.approx(1.0)
    assert paced.delay(103.0) == 0.0


class Sent:
    """A transport that keeps what is sent."""

    def __init__(self):
        self.sent = []

    def write(self, data):
        self.sent.append(data)

    def close(self):
        self.sent.append("closed")

    def is_closing(self):
        return False


def test_the_head_and_the_body_of_an_answer_are_sent_together():
    """Each call of the system cost as much as the search."""
    sent = Sent()

    async def answer():
        joined = JoinedWrites(sent, asyncio.get_running_loop())
        joined.write(b"head")
        joined.write(b"body")
        assert sent.sent == []
        await asyncio.sleep(0)
        joined.write(b"head")
        joined.write(large := b"x" * 100_000)
        assert sent.sent == [b"headbody", b"head", large]
        joined.write(b"last")
        joined.close()
        assert not joined.is_closing()

    asyncio.run(answer())
    assert sent.sent[3:] == [b"last", "closed"]


def test_a_large_body_is_parsed_once(monkeypatch):
    body = json.dumps({"code": "a1b2c3", "metadata": {"numbers": list(range(3000))}}).encode()
    monkeypatch.setattr(schemas.BaseModel, "model_validate_json", None)
    parsed = parse_json(ItemRequest, body)
    assert parsed.metadata == {"numbers": list(range(3000))}
    for wrong in (b'"zz"', b"7", b"null"):
        with pytest.raises(schemas.Problem, match="code="):
            parse_json(ItemRequest, body.replace(b'"a1b2c3"', wrong))


def test_equal_metadata_is_evaluated_once(tmp_path, monkeypatch):
    """A condition that no column decides was evaluated for each of the items."""
    index = adsh.open_index(tmp_path / "index", bits=24)
    codes = np.random.default_rng(0).integers(0, 256, size=(3000, 3), dtype=np.uint8)
    index.add([str(at) for at in range(3000)], codes, [{"class": f"c{at % 10}"} for at in range(3000)])
    evaluated, accepts = [], Filter.accepts

    def counted(self, text):
        evaluated.append(text)
        return accepts(self, text)

    monkeypatch.setattr(Filter, "accepts", counted)
    found = index.search(codes[:1], 3000, where={"class": {"ge": "c5"}})[0]
    assert len(found) == 1500
    assert len(evaluated) <= 20
    index.close()


def test_filters_of_many_searches_keep_what_they_found_out(tmp_path, monkeypatch):
    """Of five filters in turn, each began anew; those in turns of a lane would never end."""
    index = adsh.open_index(tmp_path / "index", bits=24)
    codes = np.random.default_rng(0).integers(0, 256, size=(100, 3), dtype=np.uint8)
    index.add([str(at) for at in range(100)], codes, [{"class": f"c{at % 10}", "n": [at]} for at in range(100)])
    filters = [{"class": {"ge": f"c{at}"}} for at in range(10)]
    for where in filters:
        index.search(codes[:1], 5, where=where)
    monkeypatch.setattr(Filter, "accepts", None)
    for where in filters:
        index.search(codes[:1], 5, where=where)
    index.close()
