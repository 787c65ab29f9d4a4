"""The sentences that `adsh train` and a report begin with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import adsh
from adsh.evaluate import evaluate_codings, evaluate_model, write_report
from adsh.evaluate.columns import LEARNED
from adsh.evaluate.in_words import examples, headline, worst_confusions
from adsh.evaluate.metrics import precision_at
from adsh.hamming.bits import pack

NAMES = np.array(["cat", "dog"])


def evaluation_of(query_bits, database_bits, query_labels, database_labels, **options):
    queries, database = (
        pack(np.where(np.array(bits)[:, None] == 1, 1, -1).repeat(8, 1)) for bits in (query_bits, database_bits)
    )
    items = np.zeros((len(queries), 3), np.float32), np.zeros((len(database), 3), np.float32)
    return evaluate_codings(
        queries, {LEARNED: database}, items[0], query_labels, items[1], database_labels, bits=8, name="codes", **options
    )


@pytest.fixture
def evaluation():
    """30 cats, of which 6 have the code of dogs; 10 dogs; 20 items of each class in the database, 8 bits apart."""
    query_bits, labels = [1] * 24 + [0] * 6 + [0] * 10, NAMES[[0] * 30 + [1] * 10]
    return evaluation_of(query_bits, [1] * 20 + [0] * 20, labels, NAMES[[0] * 20 + [1] * 20])


def test_the_headline_has_the_share_of_the_nearest_its_uncertainty_and_chance(evaluation):
    said = headline(evaluation)
    assert said.startswith(
        "Of the 10 nearest items to an item that it has not seen, 85 % are of the same kind (40 items, "
    )
    assert said.endswith("); by chance it would be 50 %.")
    low, high = evaluation.columns[LEARNED].nearest_interval
    assert 0.70 < low < 0.85 < high < 1.0
    assert f"95 % interval {100 * low:.0f} % to {100 * high:.0f} %" in said
    assert "too few" not in said


def test_the_classes_taken_for_another_are_named(evaluation):
    assert worst_confusions(evaluation) == "Most often taken for another: cat for dog (20 %)."


def test_a_search_without_mistakes_names_no_class():
    perfect = evaluation_of([1, 0], [1] * 12 + [0] * 12, NAMES[[0, 1]], NAMES[[0] * 12 + [1] * 12])
    assert worst_confusions(perfect) == ""
    assert "100 % are of the same kind (2 items, " in headline(perfect)
    assert "too few to go by" in headline(perfect)


def test_what_queries_found_is_counted_by_label(evaluation):
    lines = examples(evaluation)
    assert 1 < len(lines) == len(set(lines)) <= 3  # none is shown twice
    assert set(lines) <= {"cat found 10 cat", "cat found 10 dog", "dog found 10 dog"}


def test_several_labels_are_shared_and_not_confused():
    several = [["cat", "indoor"], ["dog", "outdoor"]] * 12
    said = evaluation_of([1, 0] * 12, [1, 0] * 12, several, several)
    assert "100 % share a label with it" in headline(said)
    assert worst_confusions(said) == ""


def test_the_share_is_the_precision_of_the_metrics(blobs):
    points, labels = blobs
    model = adsh.ADSH(8, outer=2, progress=False).fit(points[100:], labels[100:])
    found = evaluate_model(model, points[:100], labels[:100], points[100:], labels[100:])
    codes = model.encode(points[:100]), model.database_codes_
    [precision] = precision_at(*codes, labels[:100], labels[100:], bits=8, ks=[10])
    assert f" not seen, {100 * precision:.0f} % are" in headline(found)


def test_a_report_begins_with_them_and_ends_with_the_bits(evaluation, tmp_path):
    pytest.importorskip("matplotlib")
    page = write_report(evaluation, tmp_path / "r").read_text(encoding="utf-8")
    order = ["Of the 10 nearest items", "Most often taken for another: cat for dog", "What some queries found"]
    order += ["Figures to quote", "Curves", "What was run", "Appendix: bits and training", "How often each bit is +1"]
    places = [page.index(text) for text in order]
    assert places == sorted(places)
    assert headline(evaluation) in (tmp_path / "r/report.md").read_text(encoding="utf-8")
    compared = write_report([evaluation, replace(evaluation, name="other")], tmp_path / "two").read_text(
        encoding="utf-8"
    )
    assert "Of the 10 nearest" not in compared
