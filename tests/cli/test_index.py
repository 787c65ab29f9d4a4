"""From a folder of images to a search by image, as typed."""

from __future__ import annotations

import numpy as np
import pytest

import adsh as package
from adsh.hamming.bits import bytes_for
from adsh.search.query_parsing import parse_conditions

from ..data.image_cases import random_images, save

QUICK = ("--no-report", "--no-index")
TRAIN = ("train", "photos", "--network", "tiny", "--bits", 8, "--outer", 1, "--size", 16, "--no-report", "--out", "m")


def image_of_kind(kind: int, seed: int) -> np.ndarray:
    image = random_images(1, 20 + seed % 9, 30 - seed % 7, seed=seed)[0] // 3
    return (image + 150 * (kind == 1)).astype(np.uint8)


@pytest.fixture
def photos(tmp_path):
    for at in range(60):
        save(tmp_path / "photos" / ("cat", "dog")[at % 2] / f"{at:02}.jpg", image_of_kind(at % 2, at), quality=90)
    for at in range(60, 70):
        save(tmp_path / "new" / ("cat", "dog")[at % 2] / f"{at:02}.jpg", image_of_kind(at % 2, at), quality=90)
    return tmp_path / "photos"


@pytest.fixture
def index(adsh, photos):
    trained = adsh(
        "train",
        "photos",
        "--network",
        "tiny",
        "--bits",
        12,
        "--outer",
        4,
        "--size",
        16,
        "--out",
        "m",
        "--no-report",
        "--no-index",
    )
    assert trained.status == 0, trained.err
    built = adsh("index", "build", "i", "--model", "m", "--json")
    assert built.status == 0, built.err
    assert (built.json["new"], built.json["search"]) == (54, "buckets")
    return "i"


def test_build_puts_in_the_learned_codes_with_what_leads_back_to_the_images(adsh, index, photos):
    model, split = package.load("m"), np.load("m/split.npz")
    dataset = package.data.open_source("photos").subset(split["database"])
    with package.open_index(index) as opened:
        items = list(opened.items())
    assert [item.key for item in items] == list(dataset.keys[:])
    assert b"".join(item.code for item in items) == model.database_codes_.tobytes()
    assert items[0].metadata == {"class": items[0].key.split("/")[0], "file": str(photos / items[0].key)}
    summary = adsh("index", "info", index, "--json").json
    assert (summary["items"], summary["bits"], summary["vector_dimensions"]) == (54, 12, 64)
    assert summary["model_folder"] == str(photos.parent / "m")
    assert "54 items" in adsh("index", "verify", index).out


def test_add_codes_new_items_by_the_network_or_by_their_labels_and_repeats_nothing(adsh, index):
    model = package.load("m")
    added = adsh("index", "add", index, "new", "--by-image", "--json").json
    assert (added["new"], added["already"], added["items"], added["by_label"]) == (10, 0, 64, 0)
    with package.open_index(index) as opened:
        item = opened.get(["cat/60.jpg", "no"])
    assert item[1] is None
    images = package.data.ResizedDataset(package.data.open_source("new"), 16)
    assert item[0].code == model.encode(images)[0].tobytes()
    again = adsh("index", "add", index, "new", "--json").json
    assert (again["new"], again["already"], again["replaced"]) == (0, 10, 0)
    assert (again["added"], again["skipped"]) == (0, 10)
    by_label = adsh("index", "add", index, "new", "--by-label", "--reencode", "--json").json
    assert (by_label["new"], by_label["replaced"], by_label["by_label"]) == (0, 10, 10)
    with package.open_index(index) as opened:
        code = opened.get(["cat/60.jpg"])[0].code
    assert code == model.code_for(["cat"])[0].tobytes()
    assert adsh("index", "remove", index, "cat/60.jpg", "nothing", "--json").json == {
        "index": index, "removed": 1, "not_there": 1, "items": 63,
    }  # fmt: skip
    assert adsh("index", "compact", index).status == 0
    assert adsh("index", "verify", index).status == 0


@pytest.mark.parametrize("vectors", ["--vectors", "--no-vectors"])
def test_labels_that_were_trained_decide_the_codes_and_the_network_those_of_others(adsh, index, tmp_path, vectors):
    model = package.load("m")
    (tmp_path / "new/dog/61.jpg").rename(tmp_path / "new/loose.jpg")  # without a label
    (tmp_path / "new/dog").rename(tmp_path / "new/wolf")
    (tmp_path / "new/cat/0.jpg").write_text("not an image")
    added = adsh("index", "add", index, "new", vectors)
    assert added.status == 0, added.err
    assert "10 added, 5 of them with the codes of their labels, 1 unreadable" in added.out
    images = package.data.ResizedDataset(package.data.open_source("new"), 16)
    with package.open_index(index) as opened:
        for key, label in (("cat/60.jpg", "cat"), ("loose.jpg", None), ("wolf/63.jpg", None)):
            at = list(images.keys).index(key)
            expected = model.code_for([label]) if label else model.encode(images.subset([at]))
            assert opened.get([key])[0].code == expected[0].tobytes(), key


def test_by_label_without_vectors_reads_no_image(adsh, index, tmp_path):
    for path in tmp_path.glob("new/*/*.jpg"):
        path.write_text("not an image")
    added = adsh("index", "add", index, "new", "--no-vectors", "--json").json
    assert (added["added"], added["by_label"], added["unreadable"]) == (10, 10, [])


def test_by_label_and_by_image_exclude_each_other(index, refused):
    assert "exclude each other" in refused("index", "add", index, "new", "--by-label", "--by-image")


def test_classes_that_were_never_trained_are_reported(adsh, index, tmp_path):
    assert adsh("index", "add", index, "new").err == ""
    (tmp_path / "new/dog").rename(tmp_path / "new/wolf")
    ended = adsh("index", "add", index, "new", "--prefix", "more/")
    assert "note: the model was not trained on wolf: the codes of such items are poor" in ended.err
    assert "Vectors in the index, which order ties by default, find more of them; train again" in ended.err
    assert package.load("m").known_labels == ("cat", "dog")


def test_taking_out_what_is_not_there_is_reported(adsh, index, refused):
    key = f"cat/{next(at for at in range(0, 60, 2) if package.open_index(index).get([f'cat/{at:02}.jpg'])[0]):02}.jpg"
    ended = adsh("index", "remove", index, key, "cat/one.jpg")
    assert ended.status == 0
    assert "note: there is no item with the key cat/one.jpg; keys look like " in ended.err
    assert "nothing was removed" in refused("index", "remove", index, "a", "b", "c", "d")
    assert "the key a, b, c and 1 more" in refused("index", "remove", index, "a", "b", "c", "d")
    assert adsh("index", "info", index, "--json").json["items"] == 53


def test_what_finds_nothing_by_a_slip_is_reported(adsh, index, refused):
    query = "new/cat/60.jpg"
    ended = adsh("search", index, query, "--where", "class=catt")
    assert "0 found" in ended.out
    assert "no sampled item has class=catt: its values are cat, dog" in ended.err
    assert (
        "no sampled item has the field 'kind': the fields are class, file"
        in adsh("search", index, query, "--where", "kind=cat").err
    )
    assert adsh("search", index, query, "--where", "class=dog", "--where", "file=x").err.count("note:") == 1
    assert "give the index first, adsh search i new/cat/60.jpg" in refused("search", query, index)
    assert f"give the index first, adsh search INDEX {query} {query}" in refused("search", query, query)


def test_a_search_that_cannot_be_is_refused(adsh, index, refused):
    query = "new/cat/60.jpg"
    assert 'ranking=\'far\' is unknown: choose "hamming" or "asymmetric"' in refused(
        "search", index, query, "--ranking", "far"
    )
    by_outputs = ("search", index, query, "--radius", 2, "--ranking", "asymmetric")
    assert "a radius counts bits" in refused(*by_outputs)
    assert adsh("index", "build", "bare", "--model", "m", "--no-vectors").status == 0
    assert "holds no vectors to order ties by" in refused("search", "bare", query, "--rerank")
    assert "no.png does not exist" in refused("search", index, "no.png")


def test_unreadable_files_are_listed_and_what_was_put_in_before_stays(adsh, index, refused, tmp_path):
    (tmp_path / "new/dog/text.png").write_text("not an image")
    assert "text.png" in refused("index", "add", index, "new", "--strict")
    added = adsh("index", "add", index, "new", "--json").json
    assert added["new"] == 10
    assert [one["key"] for one in added["unreadable"]] == ["dog/text.png"]
    assert "  dog/text.png: " in adsh("index", "add", index, "new", "--skip-bad").out  # as it was asked for once


def test_search_finds_the_image_itself_and_keeps_to_the_conditions(adsh, index, tmp_path):
    adsh("index", "add", index, "new", "--by-image")
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


def test_training_on_features_can_end_with_an_index(adsh, tmp_path):
    labels = np.repeat([0, 1, 2], 30)
    np.savez(tmp_path / "f.npz", features=np.random.default_rng(0).normal(size=(90, 8)), labels=labels)
    assert adsh("train", "f.npz", "--bits", 8, "--outer", 1, "--out", "m", "--index").status == 0
    with package.open_index("m/index") as opened:
        assert len(opened) == 90  # a tenth were queries: all are added, encoded by the network


def test_wrong_commands_are_answered_in_one_line(adsh, index, refused, tmp_path):
    assert "no index at zz: create one with adsh index build" in refused("index", "info", "zz")
    assert adsh("index", "build", index, "--model", "m", "--json").json["already"] == 54
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
        adsh(
            "train",
            "new",
            "--network",
            "tiny",
            "--bits",
            12,
            "--outer",
            1,
            "--size",
            16,
            "--out",
            "m2",
            "--no-report",
            "--no-index",
        ).status
        == 0
    )
    assert "codes of two models cannot be compared" in refused("search", index, "photos/cat/00.jpg", "--model", "m2")
    old = adsh("train", "new", "--network", "tiny", "--bits", 12, "--outer", 1, "--size", 16, "--out", "m3", *QUICK)
    assert old.status == 0
    assert adsh("index", "build", "i3", "--model", "m3").status == 0
    again = ("--seed", 5, "--out", "m3", "--overwrite", *QUICK)
    assert adsh("train", "new", "--network", "tiny", "--bits", 12, "--outer", 1, "--size", 16, *again).status == 0
    assert "is not the one whose codes the index holds" in refused("search", "i3", "photos/cat/00.jpg")
    assert "is not the one whose codes the index holds" in refused("index", "add", "i3", "photos")
    (tmp_path / "m").rename(tmp_path / "gone")
    assert "which does not exist: give --model" in refused("search", index, "photos/cat/00.jpg")
    assert adsh("search", index, "photos/cat/00.jpg", "--model", "gone").status == 0


def test_a_key_of_another_folder_is_not_overwritten(adsh, index, refused, tmp_path):
    save(tmp_path / "other/cat/00.jpg", image_of_kind(0, 99))
    with package.open_index(index) as opened:
        key = next(iter(opened.keys()))
    save(tmp_path / "other" / key, image_of_kind(0, 98))
    assert "give --prefix TEXT" in refused("index", "add", index, "other")
    assert adsh("index", "add", index, "other", "--prefix", "other/").status == 0


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], None),
        (["class=cat"], {"class": {"eq": "cat"}}),
        (["year>=2000", "year<2010"], {"year": {"ge": 2000, "lt": 2010}}),
        (["good=true", "name!=a=b"], {"good": {"in": [True, "true"]}, "name": {"ne": "a=b"}}),
        (["class=7", "class!=8"], {"class": {"in": [7, "7"], "not_in": [8, "8"]}}),
        (['class="7"'], {"class": {"in": ["7", '"7"']}}),
    ],
)
def test_conditions_read_as_they_are_typed(texts, expected):
    assert parse_conditions(texts) == expected


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


def test_a_folder_becomes_an_index_with_a_model_that_never_saw_it(adsh, index, tmp_path):
    created = adsh("index", "add", "fresh", "new", "--model", "m", "--json").json
    assert (created["items"], created["bits"]) == (10, 12)
    assert len(adsh("search", "fresh", "new/cat/60.jpg", "-k", 2, "--json").json["queries"][0]["matches"]) == 2
    one = adsh("index", "add", "fresh", "photos/cat/00.jpg", "--json").json
    assert one["new"] == 1


def test_images_that_moved_are_followed_with_reencode(adsh, index, tmp_path, refused):
    adsh("index", "add", index, "new")
    (tmp_path / "new").rename(tmp_path / "moved")
    assert "--reencode, if it has moved" in refused("index", "add", index, "moved")
    assert adsh("index", "add", index, "moved", "--again", "--json").json["replaced"] == 10
    with package.open_index(index) as opened:
        assert opened.get(["cat/60.jpg"])[0].metadata["file"] == str(tmp_path / "moved/cat/60.jpg")


def test_a_slip_in_a_field_is_reported_and_numbers_find_classes_of_that_name(adsh, index, tmp_path):
    slip = adsh("search", index, "photos/cat/00.jpg", "--where", "clas=cat")
    assert "no sampled item has the field 'clas': the fields are class, file" in slip.err
    for at in range(12):
        save(tmp_path / "numbers" / str(at % 2) / f"{at}.png", image_of_kind(at % 2, at))
    trained = adsh("train", "numbers", "--network", "tiny", "--bits", 8, "--outer", 1, "--no-report", "--out", "n")
    assert trained.status == 0, trained.err
    found = adsh("search", "n", "numbers/0/0.png", "-k", 99, "--where", "class=1", "--json").json["queries"][0]
    assert {match["metadata"]["class"] for match in found["matches"]} == {"1"}
    others = adsh("search", "n", "numbers/0/0.png", "-k", 99, "--where", "class!=1", "--json").json["queries"][0]
    assert {match["metadata"]["class"] for match in others["matches"]} == {"0"}
    assert len(found["matches"]) + len(others["matches"]) == 12  # those held out are in it too


def test_labels_that_are_no_texts_are_shown(adsh, index):
    with package.open_index(index) as opened:
        code = np.frombuffer(next(iter(opened.items())).code, np.uint8)[None]
        opened.add(["0 numbers"], code, [{"class": [1, "two", None]}])
    shown = adsh("search", index, "photos/cat/00.jpg", "-k", 99)
    assert shown.status == 0, shown.err
    assert "1, two, None" in shown.out


def test_a_model_and_its_index_may_move_together(adsh, photos, tmp_path):
    trained = adsh(*TRAIN)
    assert trained.status == 0, trained.err
    (tmp_path / "m").rename(tmp_path / "elsewhere")
    assert adsh("search", "elsewhere", "photos/cat/00.jpg", "-k", 1).status == 0


def test_a_stopped_ending_is_completed_by_resume(adsh, photos, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("adsh.runs.pipeline.build_index", stopped)
        ended = adsh(*TRAIN)
    assert ended.status == 130
    assert "the model is saved: adsh train --resume --out m writes the rest" in ended.err
    assert not (tmp_path / "m/index").exists()
    assert adsh("train", "--resume", "--out", "m", "--no-report").status == 0
    assert adsh("index", "info", "m", "--json").json["items"] == 60
