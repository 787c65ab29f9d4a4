"""Searches with a filter: cheap ones wait for no expensive ones, and none keeps the event loop waiting."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time

import pytest

from adsh.index.deadline import check_deadline
from adsh.search.searcher import Searcher
from adsh.serve.engine.limits import Limits

from .conftest import png

CODE = "a1b2c3"
RED = {"code": CODE, "filter": {"class": "red"}}


@pytest.fixture
def endless(monkeypatch):
    """Searches for the class "endless" look at the clock and go on; the event lets them end."""
    run, end = Searcher.run, threading.Event()

    def searched(self, plan):
        where = plan.options.where or {}
        while where.get("class") == "endless" and not end.wait(0.001):
            check_deadline()
        return run(self, plan)

    monkeypatch.setattr(Searcher, "run", searched)
    yield end
    end.set()


def in_background(api, body):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(api.post("/v1/search", json=body).status_code))
    thread.start()
    return thread, answers


def test_a_cheap_filter_waits_for_no_expensive_one(api, endless):
    """There was one lane, which an expensive filter kept for seconds."""
    waiting = [in_background(api, {"code": CODE, "filter": {"class": "endless", "n": n}}) for n in range(3)]
    for _ in range(5):
        assert api.post("/v1/search", json=RED).status_code == 200
    assert [answers for _, answers in waiting] == [[]] * 3
    endless.set()
    for thread, answers in waiting:
        thread.join(20)
        assert answers == [200]


def test_a_filter_of_some_work_goes_before_those_that_had_more(api, endless, monkeypatch):
    """In turns that double, not one after the other until each has used its whole budget."""
    run, turns = Searcher.run, []

    def third_time(self, plan):
        if (plan.options.where or {}).get("class") == "blue":
            turns.append(plan)
            while len(turns) < 3:
                time.sleep(0.001)
                check_deadline()
        return run(self, plan)

    monkeypatch.setattr(Searcher, "run", third_time)
    waiting = [in_background(api, {"code": CODE, "filter": {"class": "endless", "n": n}}) for n in range(3)]
    time.sleep(0.3)
    assert api.post("/v1/search", json={"code": CODE, "filter": {"class": "blue"}}).status_code == 200
    assert len(turns) == 3
    assert [answers for _, answers in waiting] == [[]] * 3
    endless.set()
    for thread, _ in waiting:
        thread.join(20)


def test_an_expensive_filter_ends_with_its_budget(start, endless):
    api = start(limits=Limits(max_seconds=1.0))
    answer = api.post("/v1/search", json={"code": CODE, "filter": {"class": "endless"}})
    assert answer.status_code == 503
    assert "the search took longer than 0.25 s and was stopped" in answer.json()["detail"]


@pytest.fixture
def started(api):
    """A service whose filters are evaluated in processes of their own, and what it answered without them."""
    requests = [
        RED,
        {"code": CODE, "filter": {"class": {"gt": "green"}}, "radius": 20},
        {"key": "blue/1 é.png", "filter": {"number": {"ge": 3}}, "k": 40},
        {"code": CODE, "filter": {"number": {"in": [10**30, 5]}}},
        {"code": CODE, "filter": {"class": {"between": 1}}},
        {"code": CODE, "filter": {"no such field": 1}},
    ]
    by_image = {"filter": '{"class": {"ne": "red"}}', "ranking": "asymmetric"}

    def answers():
        found = [api.post("/v1/search", json=body) for body in requests]
        found.append(api.post("/v1/search", files={"image": png()}, data=by_image))
        return [(one.status_code, one.json().get("matches", one.json().get("detail"))) for one in found]

    expected = answers()
    api.service.start()
    lanes = api.service._searches.filtered._lanes
    until = time.monotonic() + 60
    while any(lane._worker is None or lane._lock.locked() for lane in lanes):
        assert time.monotonic() < until
        time.sleep(0.01)
    return api, lanes, answers, expected


def test_filters_are_evaluated_in_another_process_with_the_same_answers(started, monkeypatch):
    api, _, answers, expected = started

    def fail(*_):
        raise AssertionError("searched in the process of the event loop")

    monkeypatch.setattr(Searcher, "run", fail)
    assert answers() == expected
    assert {status for status, _ in expected} == {200, 422}
    new = {"code": CODE, "metadata": {"class": "new"}}
    assert api.put("/v1/items/new", json=new).status_code == 201
    found = api.post("/v1/search", json={"code": CODE, "filter": {"class": "new"}}).json()["matches"]
    assert [match["key"] for match in found] == ["new"]


def test_what_takes_long_to_import_is_imported_at_the_start(api, monkeypatch):
    """The first search of 4,096 items imported faiss, and stopped everybody meanwhile."""
    imported = []
    monkeypatch.setattr("adsh.serve.engine.service.faiss_module", lambda: imported.append("faiss"))
    api.service.start()
    assert imported == ["faiss"]


def test_a_process_that_ended_is_replaced(started):
    api, lanes, answers, expected = started
    lanes[0]._worker._process.kill()
    lanes[0]._worker._process.wait()
    assert answers() == expected
    os.kill(lanes[0]._worker._process.pid, signal.SIGSTOP)
    lane = lanes[0]
    thread, statuses = in_background(api, RED)
    time.sleep(0.2)
    lane._worker._process.kill()
    thread.join(20)
    assert statuses == [503]
    assert answers() == expected


def test_an_index_that_was_replaced_is_searched_as_it_was_opened(started):
    """A new process cannot open what was moved away: this one still has it."""
    api, lanes, answers, expected = started
    moved = api.index_folder.with_name("moved")
    api.index_folder.rename(moved)
    shutil.copytree(moved, api.index_folder)
    for lane in lanes:
        lane._worker._process.kill()
        lane._worker._process.wait()
    assert answers() == expected
    assert lanes[0]._index == {}
