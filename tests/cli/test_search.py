"""Searches as typed: by columns of a list, within a radius, and what their page shows."""

from __future__ import annotations

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

import adsh as package
from adsh.hamming.bits import pack
from adsh.search.page import write_page
from adsh.search.query_parsing import open_queries
from adsh.search.searcher import Searcher

from ..data.image_cases import random_images, save

TRAIN = ("train", "photos", "--network", "tiny", "--bits", 8, "--outer", 1, "--size", 16, "--no-report", "--out", "m")


@pytest.fixture
def photos(tmp_path):
    for at in range(61):
        image = random_images(1, 20 + at % 9, 30 - at % 7, seed=at)[0] // 3 + 150 * (at % 2)
        save(
            tmp_path / ("photos" if at < 60 else "new") / ("cat", "dog")[at % 2] / f"{at:02}.jpg",
            image.astype(np.uint8),
        )
    return tmp_path / "photos"


def test_columns_of_a_list_are_metadata_that_searches_filter_by(adsh, photos, tmp_path):
    kinds = [("cat", "dog")[at % 2] for at in range(60)]
    rows = [f"photos/{kind}/{at:02}.jpg,{kind},{2000 + at},{at:03},," for at, kind in enumerate(kinds)]
    rows[0] = rows[0].replace(",2000,", ",,")  # no year is known
    (tmp_path / "list.csv").write_text("\n".join(["path,label,year,camera,note,file", *rows]), encoding="utf-8")
    trained = adsh("train", "list.csv", *TRAIN[2:])
    assert trained.status == 0, trained.err
    assert "the column file is not stored as metadata" in trained.err

    def found(*conditions):
        where = [word for one in conditions for word in ("--where", one)]
        [query] = adsh("search", "m/index", "photos/cat/00.jpg", "-k", 60, *where, "--json").json["queries"]
        return sorted(match["metadata"]["camera"] for match in query["matches"])

    assert found("year>=2055") == ["055", "056", "057", "058", "059"]  # database items and queries alike
    assert found("year=2058", "class=cat") == ["058"]
    assert found("camera=007") == ["007"]
    assert found("year<2002") == ["001"]
    with package.open_index("m/index") as index:
        first, second = index.get(["photos/cat/00.jpg", "photos/dog/01.jpg"])
    assert first.metadata == {"camera": "000", "class": "cat", "file": str(photos / "cat/00.jpg")}
    assert second.metadata["year"] == 2001


def test_a_radius_that_finds_nothing_says_how_far_the_nearest_is(adsh, photos, tmp_path):
    with package.open_index("i", bits=12, model="of features") as index:
        index.add(["near", "far"], pack(np.array([[-1] * 2 + [1] * 10, [-1] * 12])))
        assert Searcher(index).nearest_distance(pack(np.ones((1, 12)))) == 2
    assert adsh(*TRAIN).status == 0
    ended = adsh("search", "m/index", "new/cat/60.jpg", "--radius", 0, "--where", "class=dog", "--html", "f.html")
    assert ended.status == 0, ended.err
    plain = adsh("search", "m/index", "new/cat/60.jpg", "-k", 1, "--where", "class=dog", "--json").json["queries"][0]
    away = plain["matches"][0]["distance"]
    assert away > 0
    assert f"0 found within 0 bits; the nearest is at distance {away}" in ended.out
    assert "No matches: the nearest is " in (tmp_path / "f.html").read_text()
    nothing = adsh("search", "m/index", "new/cat/60.jpg", "--radius", 1, "--where", "class=dog", "--json").json
    assert nothing["queries"][0]["nearest"] == away
    none = adsh("search", "m/index", "new/cat/60.jpg", "--radius", 0, "--where", "class=cow").out
    assert none.endswith(": 0 found within 0 bits\n")


def test_the_page_says_one_bit_and_has_images_for_sharp_screens(tmp_path, photos):
    with package.open_index(tmp_path / "i", bits=12) as index:
        large = save(tmp_path / "large.jpg", random_images(1, 400, 300)[0])
        index.add(["one", "two"], pack(np.array([[-1] + [1] * 11, [-1] * 2 + [1] * 10])), [{"file": str(large)}] * 2)
        found = index.search(pack(np.ones((1, 12))), k=2)
        write_page(tmp_path / "f.html", "i", open_queries([str(large)]), found, 12)
    page = (tmp_path / "f.html").read_text()
    assert "1 bit differs" in page
    assert "2 bits differ" in page
    for uri in re.findall(r'src="data:image/\w+;base64,([^"]+)"', page):
        with Image.open(io.BytesIO(base64.b64decode(uri))) as image:
            assert image.size == (216, 288)  # drawn at most 144 high
