"""The harness of `make attack`: requests are drawn by the seed and are HTTP; each attack can be run by its name."""

from __future__ import annotations

import random
import sys
from importlib import import_module

import pytest

pytest.importorskip("fastapi", reason="fastapi is missing: pip install 'adsh[serve]'")

from tools.attack import __main__ as runner
from tools.attack import _clients, bodies, images
from tools.attack._under_load import compare, damage_after

import adsh


@pytest.mark.parametrize("attack", [bodies, images])
def test_hostile_requests_are_drawn_by_the_seed_and_are_http(attack):
    first, second = ([attack.draw(rng) for _ in range(30)] for rng in (random.Random(7), random.Random(7)))
    assert first == second
    for request in first:
        head, _, body = request.partition(b"\r\n\r\n")
        assert head.startswith((b"POST /v1/", b"PUT /v1/"))
        if b"Content-Length: " in head:
            assert int(head.partition(b"Content-Length: ")[2].split()[0]) == len(body)


@pytest.mark.parametrize(
    ("group", "part"), [("code", b'"k": 10}'), ("image", b'name="image"'), ("filter", b'"filter": {')]
)
def test_innocent_clients_search_by_code_by_image_and_with_a_filter(group, part):
    rng = random.Random(0)
    for request in [_clients.draw_request(group, rng) for _ in range(20)]:
        head, _, body = request.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        assert part in body


def test_late_few_and_missing_answers_are_not_held():
    usual = {"answers": {"200": 10}, "per_second": 10.0, "p99_ms": 5.0, "max_ms": 20.0}
    for changed in ({"per_second": 4.9}, {"max_ms": 51.0}, {"answers": {"200": 9, "503": 1}}):
        assert compare([usual], [usual])["held"]
        assert compare([usual] * 2, [usual, {**usual, **changed}])["worst_turn"] in (0.49, 1.0)
        assert not compare([usual], [{**usual, **changed}])["held"]


def test_a_failure_in_the_log_is_damage(tmp_path):
    adsh.open_index(tmp_path / "index", bits=24).close()
    log = tmp_path / "log.jsonl"
    log.write_text('{"level":"info","status":503}\n')
    assert damage_after(tmp_path / "index", log) == {"failures": [], "index_problems": []}
    log.write_text('{"level":"error","text":"x"}\n')
    assert damage_after(tmp_path / "index", log)["failures"] == ['{"level":"error","text":"x"}']


@pytest.mark.parametrize("name", runner.NAMES)
def test_every_attack_has_a_summary_and_can_be_run(name):
    attack = import_module(f"tools.attack.{name}")
    assert attack.__doc__.splitlines()[0].endswith(".")
    assert callable(attack.run)


def test_an_unknown_attack_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["attack", "none"])
    with pytest.raises(SystemExit):
        runner.main()
    assert "none is no attack: choose from bodies" in capsys.readouterr().err
