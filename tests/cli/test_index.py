"""From a folder of pictures to a search by picture, as typed."""

from __future__ import annotations

import numpy as np
import pytest

import adsh as package
from adsh.hamming.bits import bytes_for
from adsh.queries import conditions

from ..data.pictures import random_images, save


def picture(kind: int, seed: int) -> np.ndarray:
    image = random_images(1, 20 + seed % 9, 30 - seed % 7, seed=seed)[0] // 3
    return (image + 150 * (kind == 1)).astype(np.uint8)


@pytest.fixture
def photos(tmp_path):
    for at in range(60):
        save(tmp_path / "photos" / ("cat", "dog")[at % 2] / f"{at:02}.jpg", picture(at % 2, at), quality=90)
    for at in range(60, 70):
        save(tmp_path / "new" / ("cat", "dog")[at % 2] / f"{at:02}.jpg", picture(at % 2, at), quality=90)
    return tmp_path / "photos"


@pytest.fixture
def index(adsh, photos):
    trained = adsh("train", "photos", "--network", "tiny", "--bits", 12, "--outer", 4, "--size", 16, "--out", "m")
    assert trained.status == 0, trained.err
    built = adsh("index", "build", "i", "--model", "m", "--json")
    assert built.status == 0, built.err
    assert (built.json["new"], built.json["search"]) == (54, "buckets")
    return "i"


def test_build_puts_in_the_learned_codes_with_what_leads_back_to_the_pictures(adsh, index, photos):
    model, split = package.load("m"), np.load("m/split.npz")
    dataset = package.data.open_source("photos").subset(split["database"])
    with package.open_index(index) as opened:
        items = list(opened.items())
    assert [item.key for item in items] == list(dataset.keys[:])
    assert b"".join(item.code for item in items) == model.database_codes_.tobytes()
    assert items[0].metadata == {"class": items[0].key.split("/")[0], "file": str(photos / items[0].key)}
    told = adsh("index", "info", index, "--json").json
    assert (told["items"], told["bits"], told["vector_dimensions"]) == (54, 12, 64)
    assert told["model_folder"] == str(photos.parent / "m")
    assert "54 items" in adsh("index", "verify", index).out


def test_add_codes_new_items_by_the_network_or_by_their_labels_and_repeats_nothing(adsh, index):
    model = package.load("m")
    added = adsh("index", "add", index, "new", "--json").json
    assert (added["new"], added["already"], added["items"]) == (10, 0, 64)
    with package.open_index(index) as opened:
        item = opened.get(["cat/60.jpg", "no"])
    assert item[1] is None
    images = package.data.Sized(package.data.open_source("new"), 16)
    assert item[0].code == model.encode(images)[0].tobytes()
    again = adsh("index", "add", index, "new", "--json").json
    assert (again["new"], again["already"], again["replaced"]) == (0, 10, 0)
    by_label = adsh("index", "add", index, "new", "--by-label", "--again", "--json").json
    assert (by_label["new"], by_label["replaced"]) == (0, 10)
    with package.open_index(index) as opened:
        code = opened.get(["cat/60.jpg"])[0].code
    assert code == model.code_for(["cat"])[0].tobytes()
    assert adsh("index", "remove", index, "cat/60.jpg", "nothing", "--json").json == {
        "index": index, "removed": 1, "not_there": 1, "items": 63,
    }  # fmt: skip
    assert adsh("index", "compact", index).status == 0
    assert adsh("index", "verify", index).status == 0


def test_unreadable_files_are_listed_and_what_was_put_in_before_stays(adsh, index, refused, tmp_path):
    (tmp_path / "new/dog/text.png").write_text("no picture")
    assert "text.png" in refused("index", "add", index, "new")
    added = adsh("index", "add", index, "new", "--skip-bad", "--json").json
    assert added["new"] == 10
    assert [one["key"] for one in added["unreadable"]] == ["dog/text.png"]
    assert "dog/text.png" in adsh("index", "add", index, "new", "--skip-bad").out


def test_search_finds_the_picture_itself_and_keeps_to_the_conditions(adsh, index, tmp_path):
    adsh("index", "add", index, "new")
    found = adsh("search", index, "new/cat/60.jpg", "new/dog/61.jpg", "-k", 5, "--html", "f.html", "--json").json
    assert [answer["query"] for answer in found["queries"]] == ["new/cat/60.jpg", "new/dog/61.jpg"]
    first = found["queries"][0]["matches"]
    assert len(first) == 5
    assert (first[0]["key"], first[0]["distance"]) == ("cat/60.jpg", 0)  # ties by features: itself before its class
    assert first[0]["metadata"]["class"] == "cat"
    page = (tmp_path / "f.html").read_text()
    assert page.count("<img ") == 12
    assert "cat/60.jpg" in page
    dogs = adsh("search", index, "new/cat/60.jpg", "-k", 50, "--where", "class=dog", "--json").json["queries"][0]
    assert {m["metadata"]["class"] for m in dogs["matches"]} == {"dog"}
    near = adsh("search", index, "new/cat/60.jpg", "-k", 100, "--radius", 0, "--json").json["queries"][0]["matches"]
    assert {m["distance"] for m in near} == {0}
    plain = adsh("search", index, "new/cat/60.jpg", "--ranking", "asymmetric", "-k", 3)
    assert plain.status == 0
    assert plain.out.startswith("new/cat/60.jpg: 3 found\n")


def test_features_are_searched_by_rows(adsh, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 2
    features = (rng.normal(size=(80, 6)) + 4 * labels[:, None]).astype(np.float32)
    np.save(tmp_path / "x.npy", features)
    np.save(tmp_path / "y.npy", labels)
    for method in ((), ("--method", "itq")):
        out = f"m{len(method)}"
        trained = adsh("train", "x.npy", "--labels", "y.npy", "--bits", 4, "--protocol", "all", "--out", out, *method)
        assert trained.status == 0, trained.err
        assert adsh("index", "build", f"i{out}", "--model", out, "--json").json["items"] == 80
        found = adsh("search", f"i{out}", "x.npy", "-k", 3, "--json").json["queries"]
        assert [answer["query"] for answer in found[:2]] == ["x.npy[0]", "x.npy[1]"]
        assert found[5]["matches"][0]["metadata"]["class"] == str(labels[5])


def test_wrong_commands_are_answered_in_one_line(adsh, index, refused, tmp_path):
    assert "no index at zz: make one with adsh index build" in refused("index", "info", "zz")
    assert "holds 54 items already" in refused("index", "build", index, "--model", "m")
    assert "does not exist" in refused("search", index, "nothing.jpg")
    assert "is a folder" in refused("search", index, "photos")
    assert "no image of a known format" in refused("search", index, "m/run.toml")
    assert "--where class: give FIELD=VALUE" in refused("search", index, "photos/cat/00.jpg", "--where", "class")
    assert "ranking='cosine'" in refused("search", index, "photos/cat/00.jpg", "--ranking", "cosine")
    assert "k=0" in refused("search", index, "photos/cat/00.jpg", "-k", 0)
    assert "radius=-1" in refused("search", index, "photos/cat/00.jpg", "--radius", -1)
    assert "no key is given" in refused("index", "remove", index)
    adsh("index", "add", index, "new")
    assert (
        adsh("train", "new", "--network", "tiny", "--bits", 12, "--outer", 1, "--size", 16, "--out", "m2").status == 0
    )
    assert "codes of two models cannot be compared" in refused("search", index, "photos/cat/00.jpg", "--model", "m2")
    (tmp_path / "m").rename(tmp_path / "gone")
    assert "which is not there: give --model" in refused("search", index, "photos/cat/00.jpg")
    assert adsh("search", index, "photos/cat/00.jpg", "--model", "gone").status == 0


def test_a_key_of_another_folder_is_not_overwritten(adsh, index, refused, tmp_path):
    save(tmp_path / "other/cat/00.jpg", picture(0, 99))
    with package.open_index(index) as opened:
        key = next(iter(opened.keys()))
    save(tmp_path / "other" / key, picture(0, 98))
    assert "give --prefix TEXT" in refused("index", "add", index, "other")
    assert adsh("index", "add", index, "other", "--prefix", "other/").status == 0


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], None),
        (["class=cat"], {"class": {"eq": "cat"}}),
        (["year>=2000", "year<2010"], {"year": {"ge": 2000, "lt": 2010}}),
        (["good=true", "name!=a=b"], {"good": {"eq": True}, "name": {"ne": "a=b"}}),
        (['class="7"'], {"class": {"eq": "7"}}),
    ],
)
def test_conditions_read_as_they_are_typed(texts, expected):
    assert conditions(texts) == expected


def test_an_index_keeps_notes_and_gives_items_by_key(tmp_path):
    codes = np.zeros((2, bytes_for(9)), dtype=np.uint8)
    with package.open_index(tmp_path / "i", bits=9) as index:
        assert index.noted("model") is None
        index.note("model", "a")
        index.note("model", "b")
        index.add(["x", "y"], codes, [{"tags": ["red", "green"]}, None])
        assert index.get(["y", "z", "x"]) == [("y", b"\0\0", None), None, ("x", b"\0\0", {"tags": ["red", "green"]})]
        assert index.search(codes[:1], where={"tags": "red"})[0].keys == ["x"]
        assert index.search(codes[:1], where={"tags": {"ne": "red"}})[0].keys == []
    with package.open_index(tmp_path / "i") as index:
        assert index.noted("model") == "b"
        assert index.verify() == []
