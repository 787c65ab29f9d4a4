"""Which classes are taken for which, next to a plain count over all pairs."""

from collections import defaultdict
from html import escape

import numpy as np
import pytest

from adsh.evaluate import evaluate_codings, read_report, write_report
from adsh.evaluate.confusions import confusions
from adsh.hamming.bits import pack
from adsh.labels import LabelSets

BITS = 5  # few, so that many items are equally near


def plainly(queries, database, query_labels, labels, *, leave_one_out=False):
    """Share of each class among the nearest items of each class's queries, pair by pair."""
    shares, count = defaultdict(lambda: defaultdict(float)), defaultdict(int)
    for i, (query, own) in enumerate(zip(queries, query_labels, strict=True)):
        distances = (query != database).sum(axis=1).astype(float)
        if leave_one_out:
            distances[i] = np.inf
        nearest = np.flatnonzero(distances == distances.min())
        count[own] += 1
        for j in nearest:
            shares[own][labels[j]] += 1 / len(nearest)
    return {own: {name: value / count[own] for name, value in of.items()} for own, of in shares.items()}


@pytest.mark.parametrize("leave_one_out", [False, True])
def test_shares_are_those_of_a_plain_count(leave_one_out, monkeypatch):
    monkeypatch.setattr("adsh.evaluate.confusions._BLOCK", 90)  # several blocks
    rng = np.random.default_rng(0)
    database, labels = rng.choice([-1, 1], size=(90, BITS)), rng.choice(list("abcdefg"), 90)
    queries, query_labels = rng.choice([-1, 1], size=(40, BITS)), rng.choice(list("abch"), 40)  # h is not stored
    if leave_one_out:
        queries, query_labels = database, labels
    expected = plainly(queries, database, query_labels, labels, leave_one_out=leave_one_out)
    found = confusions(
        pack(queries), pack(database), LabelSets.of(query_labels), LabelSets.of(labels),
        bits=BITS, leave_one_out=leave_one_out,
    )  # fmt: skip
    assert {one.name for one in found} == set(expected)
    for one in found:
        wrong = {name: share for name, share in expected[one.name].items() if name != one.name}
        assert one.share == pytest.approx(max(wrong.values()))
        assert one.share == pytest.approx(wrong[one.taken_for])
        assert one.correct == pytest.approx(expected[one.name].get(one.name, 0))
        assert one.queries == (query_labels == one.name).sum()
    assert [one.share for one in found] == sorted((one.share for one in found), reverse=True)


def test_an_item_alone_at_its_code_looks_at_the_next_ones():
    codes = pack(np.array([[1, 1, 1], [1, 1, -1], [-1, -1, -1], [-1, -1, -1]]))
    labels = LabelSets.of(["cat", "dog", "owl", "owl"])
    found = confusions(codes, codes, labels, labels, bits=3, leave_one_out=True)
    assert [(one.name, one.taken_for, one.share) for one in found] == [("cat", "dog", 1.0), ("dog", "cat", 1.0)]


def test_items_without_a_label_are_left_out_and_several_labels_have_no_confusions():
    codes = pack(np.array([[1, 1], [1, 1], [-1, -1]]))
    found = confusions(codes[:1], codes, LabelSets.of(["a"]), LabelSets.of([None, "a", "b"]), bits=2)
    assert found == []
    assert confusions(codes, codes, LabelSets.of([["a", "b"]] * 3), LabelSets.of(["a"] * 3), bits=2) is None


@pytest.mark.usefixtures("no_figures")
@pytest.mark.filterwarnings("ignore:the report has no figures")
def test_the_report_lists_the_largest_confusions(tmp_path):
    names = [f"class <{number}>" for number in range(12)]
    rng = np.random.default_rng(1)
    codes, labels = pack(rng.choice([-1, 1], size=(120, 4))), np.repeat(names, 10)
    evaluation = evaluate_codings(
        codes[::2], {"learned": codes}, codes[::2], labels[::2], codes, labels, bits=4, name="x", cases=0
    )
    page = write_report(evaluation, tmp_path).read_text()
    first = evaluation.columns["new"].confusions[0]
    cells = (escape(first.name), escape(first.taken_for))
    assert "<td>{}</td><td>{}</td><td class=main>{:.0%}</td>".format(*cells, first.share) in page
    assert "the 10 largest" in page
    text = (tmp_path / "report.md").read_text()
    assert f"| {first.name} | {first.taken_for} | {first.share:.0%} | {first.correct:.0%} | {first.queries} |" in text
    assert read_report(tmp_path) == [evaluation]
