import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import adsh
from adsh.errors import AdshWarning, FolderError, InputError, MissingExtraError
from adsh.evaluate import plots
from adsh.evaluate.evaluation import evaluate_model
from adsh.evaluate.report import HEADINGS, compare_reports, read_report, table, write_report


@pytest.fixture(scope="module")
def evaluations(tmp_path_factory):
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 4
    images = rng.integers(0, 60, size=(120, 8, 8, 3), dtype=np.uint8)
    for label in range(4):
        images[labels == label, 2 * label : 2 * label + 2] += 150
    results = []
    for bits in (8, 16):
        model = adsh.ADSH(bits, network="tiny", outer=3, samples=100).fit(images, labels)
        results.append(evaluate_model(model, images[:20], labels[:20], images, labels, cases=2))
    return results


class Tags(HTMLParser):
    """Every opened tag is closed, and nothing is fetched from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href") and value]
        if tag not in ("meta", "img", "br", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "xlink:href") and value]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read_page(path):
    text = path.read_text(encoding="utf-8")
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    return text, tags


def test_a_report_is_json_markdown_and_one_page_with_its_images_inside(evaluations, tmp_path):
    path = write_report(evaluations[:1], tmp_path / "report")
    text, tags = read_page(path)
    assert tags.seen.count("svg") == 8  # all but MAP by bits, which needs two lengths
    assert tags.seen.count("img") == 2 * 2 * 11
    assert all(link.startswith(("data:", "#")) for link in tags.links)
    assert plots.INK not in text
    column = evaluations[0].columns["learned"]
    assert f"{column.map_expected:.4f}" in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text

    markdown = (tmp_path / "report" / "report.md").read_text()
    assert f"{column.map_expected:.4f}" in markdown
    for link in re.findall(r"\((figures/[^)]+)\)", markdown):
        assert (tmp_path / "report" / link).read_bytes().startswith(b"\x89PNG")
    assert read_report(tmp_path / "report") == evaluations[:1]


def test_wrong_items_are_framed_and_crossed(evaluations, tmp_path):
    case = evaluations[0].cases["learned"][0]
    wrong = replace(case, found=[replace(case.found[0], relevant=False), *case.found[1:]])
    changed = replace(evaluations[0], cases={"learned": [wrong]})
    text, _ = read_page(write_report([changed], tmp_path / "r"))
    assert text.count('class="item wrong"') == 1 + sum(not shown.relevant for shown in case.found[1:])
    assert "✕" in text


def test_several_reports_overlay_in_one(evaluations, tmp_path):
    for i, evaluation in enumerate(evaluations):
        write_report([evaluation], tmp_path / str(i))
    path = compare_reports([tmp_path / "0", tmp_path / "1" / "report.json"], tmp_path / "both")
    text, tags = read_page(path)
    assert tags.seen.count("svg") == 9
    assert "2 models compared" in text
    assert tags.seen.count("tr") == 1 + 6
    assert read_report(tmp_path / "both") == evaluations


def test_names_are_escaped(evaluations, tmp_path):
    text, _ = read_page(write_report([replace(evaluations[0], name="<b>&")], tmp_path / "r"))
    assert "<b>&" not in text
    assert "&lt;b&gt;&amp;" in text


def test_reports_that_cannot_be_read_or_written_are_reported(evaluations, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(FolderError, match="file"):
        write_report(evaluations, tmp_path / "file")
    with pytest.raises(InputError, match="no evaluation"):
        write_report([], tmp_path / "r")
    with pytest.raises(InputError, match="cannot be read as a report"):
        read_report(tmp_path / "nothing")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InputError, match="not a complete report"):
        read_report(tmp_path / "other.json")
    (tmp_path / "new.json").write_text(json.dumps({"format": "adsh-report", "format_version": 9}))
    with pytest.raises(InputError, match="upgrade"):
        read_report(tmp_path / "new.json")


def test_without_matplotlib_the_report_has_no_figures_and_says_how_to_get_them(evaluations, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match="pip install matplotlib"):
        plots.figures(evaluations)
    with pytest.warns(AdshWarning, match="no figures.*pip install matplotlib"):
        path = write_report(evaluations, tmp_path / "r")
    _, tags = read_page(path)
    assert "svg" not in tags.seen
    assert read_report(tmp_path / "r") == evaluations


def test_one_evaluation_may_be_given_alone_and_equal_names_are_distinguished(evaluations, tmp_path):
    assert read_report(write_report(evaluations[0], tmp_path / "one").parent) == evaluations[:1]
    one, other = evaluations[0], replace(evaluations[0], about={**evaluations[0].about, "seed": 1})
    names = [e.name for e in read_report(write_report([one, other, one], tmp_path / "r").parent)]
    assert len(set(names)) == 3
    assert names[1].endswith(", seed 1")


def test_one_name_at_several_lengths_is_one_line_of_map_by_bits(evaluations, tmp_path):
    both = [replace(evaluation, name="ours") for evaluation in evaluations]
    stored = read_report(write_report(both, tmp_path / "r").parent)
    assert [evaluation.name for evaluation in stored] == ["ours, 8 bits", "ours, 16 bits"]
    figure = plots.figures(stored)["map_by_bits"][1]
    assert {len(line.get_xdata()) for line in figure.axes[0].get_lines()} == {2}


def test_odd_values_and_names_end_in_a_whole_report(evaluations, tmp_path):
    about = {"seed": np.int64(3), "split": tmp_path, "rate": float("nan")}
    odd = [replace(evaluations[0], name=r"$\foo$ & <i>", about=about), replace(evaluations[1], k=5)]
    path = write_report(odd, tmp_path / "r")
    read_page(path)
    saved = json.loads((path.parent / "report.json").read_text(), parse_constant=pytest.fail)
    assert saved["evaluations"][0]["about"] == {"seed": 3, "split": str(tmp_path), "rate": None}
    assert "compare with care" in path.read_text()


@pytest.mark.parametrize(
    "spoil", [{}, {"format_version": 1}, {"format_version": "1"}, {"format_version": 1, "evaluations": 3}]
)
def test_a_damaged_report_is_refused_in_words(tmp_path, spoil):
    (tmp_path / "report.json").write_text(json.dumps({"format": "adsh-report", **spoil}))
    with pytest.raises(InputError, match="not a complete report"):
        read_report(tmp_path)


def test_precision_at_100_is_left_out_where_there_are_fewer_items(blobs):
    points, labels = blobs
    model = adsh.ADSH(8, outer=1).fit(points[:60], labels[:60])
    small = evaluate_model(model, points[60:70], labels[60:70], points[:60], labels[:60])
    assert {dict(zip(HEADINGS, row, strict=True))["P@100"] for row in table([small])} == {"–"}
