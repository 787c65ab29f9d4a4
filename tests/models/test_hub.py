"""Models on a hub, by the real huggingface_hub against a small server on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

import adsh
from adsh.errors import FolderError, InputError, ServerError
from adsh.evaluate import evaluate_model, write_report
from adsh.methods import create

from .hub_server import Hub

huggingface_hub = pytest.importorskip("huggingface_hub")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Iterator[Hub]:
    server = Hub()
    monkeypatch.setenv("HF_ENDPOINT", server.url)
    monkeypatch.setenv("HF_TOKEN", "token")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def model(blobs):
    return adsh.ADSH(8, network="linear", outer=2, inner=1, device="cpu", progress=False).fit(*blobs)


def test_a_model_is_pushed_and_loaded_by_its_name(hub, model, blobs, tmp_path):
    address = model.push_to_hub("me/birds")
    assert address.startswith(f"{hub.url}/me/birds/commit/")
    loaded = adsh.load("me/birds", cache=tmp_path)
    assert np.array_equal(loaded.encode(blobs[0]), model.encode(blobs[0]))
    assert np.array_equal(loaded.predict(blobs[0]), model.predict(blobs[0]))


def test_the_cache_serves_without_a_network(hub, model, blobs, tmp_path):
    model.push_to_hub("me/birds")
    adsh.load("me/birds", cache=tmp_path)
    hub.requests.clear()
    assert adsh.load("me/birds", cache=tmp_path, offline=True).bits == 8
    assert not hub.requests
    with pytest.raises(ServerError, match="is not in the cache"):
        adsh.load("me/cats", cache=tmp_path, offline=True)


def test_revisions_are_kept_apart(hub, model, blobs, tmp_path):
    model.push_to_hub("me/birds")
    first = hub.branches["me/birds"]["main"]
    adsh.ADSH(16, network="linear", outer=1, inner=1, device="cpu", progress=False).fit(*blobs).push_to_hub("me/birds")
    create("itq", bits=4).fit(blobs[0]).push_to_hub("me/birds", revision="itq")
    assert adsh.load("me/birds", cache=tmp_path).bits == 16
    assert adsh.load("me/birds", cache=tmp_path, revision=first).bits == 8
    with pytest.raises(FolderError, match="check the name and revision"):
        adsh.load("me/birds", cache=tmp_path, revision="no-such")


def test_a_method_on_features_is_pushed_too(hub, blobs, tmp_path):
    itq = create("itq", bits=4).fit(blobs[0])
    itq.push_to_hub("me/itq")
    assert np.array_equal(adsh.load("me/itq", cache=tmp_path).encode(blobs[0]), itq.encode(blobs[0]))


def test_the_card_has_a_header_and_the_figures_of_a_report(hub, model, blobs, tmp_path):
    X, y = blobs
    evaluation = evaluate_model(model, X[:30], y[:30], X, y)
    write_report([evaluation], tmp_path / "report")
    model.push_to_hub("me/birds", report=tmp_path)
    card = huggingface_hub.ModelCard(hub.commits["me/birds"][hub.branches["me/birds"]["main"]]["README.md"].decode())
    assert card.data.library_name == "adsh"
    assert {"hashing", "bits:8"} <= set(card.data.tags)
    learned = evaluation.columns["learned"].map_expected
    values = {result.metric_name: result.metric_value for result in card.data.eval_results}
    assert values["MAP, learned"] == pytest.approx(learned, abs=1e-4)
    assert f"| learned | {learned:.4f} |" in card.text
    assert 'adsh.load("me/birds")' in card.text
    with pytest.raises(FolderError, match="holds no report"):
        model.push_to_hub("me/birds", report=tmp_path / "nothing")


def test_items_kept_for_updates_stay_here_unless_requested(hub, model):
    model.push_to_hub("me/birds")
    files = hub.commits["me/birds"][hub.branches["me/birds"]["main"]]
    assert "replay.safetensors" not in files
    assert "replay.safetensors" not in json.loads(files["config.json"])["files"]
    assert model.replay_ is not None
    model.push_to_hub("me/birds", items=True)
    assert "replay.safetensors" in hub.commits["me/birds"][hub.branches["me/birds"]["main"]]


def test_names_and_folders_are_distinguished(hub, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model.save(tmp_path / "me" / "birds")
    assert adsh.load("me/birds").bits == 8
    assert not hub.requests
    with pytest.raises(InputError, match="goes with owner/name"):
        adsh.load("me/birds", revision="main")
    with pytest.raises(FolderError, match="neither a folder nor a model on the hub"):
        adsh.load("me/cats")
    with pytest.raises(FolderError, match="is not a folder"):
        adsh.load("no-such")
    with pytest.raises(InputError, match="give owner/name"):
        model.push_to_hub("birds")
