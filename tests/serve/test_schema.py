"""Whatever fits the OpenAPI description, or does not, is answered without a failure of the server's own."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

schemathesis = pytest.importorskip("schemathesis", reason="made-up requests need: pip install schemathesis")

EXAMPLES = int(os.environ.get("ADSH_SCHEMA_EXAMPLES", "8"))  # for each route and way


@pytest.mark.parametrize("examples", [2, pytest.param(EXAMPLES, marks=pytest.mark.slow)])
def test_generated_requests_never_break_the_server(start, artifacts, examples):
    """Requests that fit the description, and requests that break it in one place."""
    failures: list[dict] = []
    client = start(
        only_local=False,
        images=artifacts.photos,
        write=lambda line: failures.append(line) if line["level"] == "error" else None,
    )
    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    statuses: Counter[int] = Counter()
    for found in schema.get_all_operations():
        for mode in schemathesis.GenerationMode:

            @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
            @given(case=found.ok().as_strategy(generation_mode=mode))
            def ask(case):
                response = case.call()
                statuses[response.status_code] += 1
                assert response.status_code < 500, failures
                if response.status_code >= 400 and case.method != "HEAD":
                    assert set(response.json()) == {"detail", "request_id"}
                    assert "\n" not in response.json()["detail"]

            with suppress(Unsatisfiable):  # nothing in it can be broken
                ask()
    print(dict(statuses))
    assert min(statuses[200], statuses[422]) > examples


def test_every_route_is_described_with_an_example(start):
    document = start(token="t").get("/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["description"], (path, method)
            if path.startswith("/v1"):
                assert operation["security"] == [{"token": []}]
                assert operation["responses"]["422"]["content"]["application/json"]["schema"]["$ref"].endswith(
                    "ErrorAnswer"
                )
            if "application/json" in operation.get("requestBody", {}).get("content", {}):
                assert operation["requestBody"]["content"]["application/json"]["examples"]


def test_every_answer_that_may_come_is_described(start):
    """Those of the guard and of the framework, too, and the routes outside of /v1."""
    paths = start(token="t").get("/openapi.json").json()["paths"]
    common = {"401", "403", "405", "408", "413", "415", "421", "422", "429", "431", "500", "503", "504"}
    for path, methods in paths.items():
        for method, operation in methods.items():
            if path.startswith("/v1"):
                assert common <= set(operation["responses"]), (path, method)
    assert {"401", "429"} <= set(paths["/metrics"]["get"]["responses"])
    assert "429" in paths["/readyz"]["get"]["responses"]


def test_forms_and_answers_have_examples(start):
    client = start()
    paths = client.get("/openapi.json").json()["paths"]
    forms = 0
    for path, methods in paths.items():
        for operation in methods.values():
            form = operation.get("requestBody", {}).get("content", {}).get("multipart/form-data")
            if form is not None:
                forms += 1
                assert form["example"]["image"], path
                assert all(field["description"] for field in form["schema"]["properties"].values()), path
    assert forms == 3
    for name, keys in (("search", {"code", "bits", "ranking", "reranked", "matches"}), ("encode", {"code", "outputs"})):
        answer = paths[f"/v1/{name}"]["post"]["responses"]["200"]["content"]["application/json"]
        assert keys <= set(answer["example"])
        assert (answer["example"]["bits"], len(answer["example"]["code"])) == (24, 6)
        assert answer["schema"]["$ref"]


def test_ready_says_no_more_than_that(start):
    assert start(token="t").get("/readyz").text == "ready\n"
