"""What looks like nothing known: in a search, in a folder, without torch, and over HTTP."""

import json

import numpy as np
import pytest
from PIL import Image

import adsh
from adsh.data import ArrayDataset, open_source
from adsh.encoders.onnx_model import OnnxModel
from adsh.export.onnx import export
from adsh.search.query_parsing import open_queries
from adsh.search.searcher import UNFAMILIAR, Searcher, SearchOptions, encode_queries
from adsh.search.unknown import find_unknown


def draw(shape, rng):
    """A noisy image of 16 x 16 with a bar or a square, in one of a few places."""
    pixels = rng.integers(90, 130, (16, 16, 3))
    at = rng.integers(0, 4)
    colour = {"bar": (220, 30, 30), "column": (30, 220, 30), "square": (30, 30, 220), "ring": (230, 230, 30)}[shape]
    if shape == "bar":
        pixels[4 + at : 7 + at] = colour
    elif shape == "column":
        pixels[:, 4 + at : 7 + at] = colour
    else:
        pixels[3 + at : 11 + at, 3 + at : 11 + at] = colour
    return pixels.clip(0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model of three shapes with an index, and a folder in which a fourth one turns up."""
    folder, rng = tmp_path_factory.mktemp("shapes"), np.random.default_rng(0)
    for name, kinds, each in (("known", ("bar", "column", "square"), 40), ("mixed", ("bar", "square", "ring"), 12)):
        for kind in kinds:
            (folder / name / kind).mkdir(parents=True)
            for number in range(each):
                Image.fromarray(draw(kind, rng)).save(folder / name / kind / f"{number}.png")
    source = open_source(str(folder / "known"))
    model = adsh.ADSH(16, network="frozen:tiny", outer=8, device="cpu", progress=False)
    images = np.stack([source[i] for i in range(len(source))])
    model.fit(images, source.labels, save_to=folder / "model")
    with adsh.open_index(folder / "model/index", bits=16, model=folder / "model") as index:
        index.add(list(source.keys), model.database_codes_)
    return folder


def test_a_search_says_how_familiar_its_query_is(run):
    model = adsh.load(run / "model")
    queries = open_queries([str(run / "mixed/bar/0.png"), str(run / "mixed/ring/0.png")])
    encoded = encode_queries(model, queries)
    with adsh.open_index(run / "model/index") as index:
        searcher = Searcher(index)
        known, unknown = searcher.answer(searcher.plan(encoded, SearchOptions()))
    assert known.familiarity > 0.05
    assert unknown.familiarity < 0.05
    assert [known.familiarity, unknown.familiarity] == encoded.familiarity


def test_unknown_items_are_found_and_grouped(run):
    items, reports = open_source(str(run / "mixed")), []
    groups = find_unknown(adsh.load(run / "model"), items, lambda *done: reports.append(done), below=0.05)
    found = [items.keys[item] for group in groups for item in group.items]
    rings = [key for key in found if key.startswith("ring")]
    assert len(rings) >= 9
    assert len(found) - len(rings) <= 4
    assert reports[-1] == (36, 36)
    largest = [items.keys[item] for item in groups[0].items]
    assert sum(key.startswith("ring") for key in largest) > 0.8 * len(largest)
    assert all(share < 0.05 for group in groups for share in group.familiarity)
    assert UNFAMILIAR < 0.05


def test_an_export_says_the_same(run, tmp_path):
    pytest.importorskip("onnxruntime")
    export(run / "model", tmp_path / "exported")
    queries = open_queries([str(path) for path in sorted((run / "mixed").glob("*/*.png"))])
    ours = encode_queries(adsh.load(run / "model"), queries).familiarity
    theirs = encode_queries(OnnxModel(tmp_path / "exported"), queries).familiarity
    np.testing.assert_allclose(ours, theirs, atol=0.02)


def test_the_command_lists_them_with_a_page(run, capsys, monkeypatch):
    from adsh.cli import main

    page = run / "unknown.html"
    given = ["search", run / "model/index", run / "mixed", "--unknown", "--html", page, "--json"]
    monkeypatch.setattr("sys.argv", ["adsh", *map(str, given)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    answer = json.loads(capsys.readouterr().out)
    assert answer["items"] == 36
    assert answer["groups"]
    assert "Group 1" in page.read_text()


def test_features_are_compared_as_they_are():
    rng = np.random.default_rng(1)
    labels = np.repeat([0, 1, 2], 50)
    X = (4 * rng.standard_normal((4, 10))[labels] + rng.standard_normal((150, 10))).astype(np.float32)
    model = adsh.ADSH(16, network="mlp", outer=2, device="cpu", progress=False).fit(X, labels)
    encoded = encode_queries(model, ArrayDataset(X[:5]))
    assert encoded.familiarity == model.familiarity(X[:5]).tolist()
