"""Folds: who is in which, and what is pooled over them."""

import numpy as np
import pytest

from adsh.evaluate.cross_fit import assign_folds, choose_folds, evaluate_fold, is_small, pool
from adsh.evaluate.ranking import Ranking
from adsh.hamming.bits import pack
from adsh.labels import LabelSets


def test_every_class_has_its_share_of_each_fold_and_copies_are_in_one():
    rng = np.random.default_rng(0)
    labels = LabelSets.of(np.repeat([0, 1, 2], [50, 20, 10]))
    features = rng.normal(size=(80, 3)).astype(np.float32)
    features[7] = features[3]  # a copy
    fold = assign_folds(features, labels, 5, seed=0)
    assert fold[7] == fold[3]
    for number, size in ((0, 49), (1, 20), (2, 10)):
        counts = np.bincount(np.delete(fold, 7)[np.delete(labels.ids, 7) == number], minlength=5)
        assert counts.sum() == size
        assert counts.max() - counts.min() <= 1
    assert (fold == assign_folds(features, labels, 5, seed=0)).all()
    assert (fold != assign_folds(features, labels, 5, seed=1)).any()


def test_small_classes_get_fewer_folds():
    assert choose_folds(LabelSets.of(np.repeat(np.arange(4), 50))) == 5
    assert choose_folds(LabelSets.of(np.repeat(np.arange(4), 6))) == 3
    assert choose_folds(LabelSets.of(np.repeat(np.arange(4), 2))) == 2


@pytest.mark.parametrize(
    ("queries", "classes", "small"), [(199, 2, True), (200, 2, False), (400, 100, True), (1000, 100, False)]
)
def test_a_held_out_part_is_small_by_its_queries_and_those_of_a_class(queries, classes, small):
    assert is_small(LabelSets.of(np.arange(queries) % classes), LabelSets.of(np.arange(5000) % classes)) == small


def test_pooled_figures_are_those_of_all_queries():
    rng = np.random.default_rng(1)
    codes, labels = pack(rng.choice([-1, 1], size=(30, 6))), LabelSets.of(rng.integers(3, size=30))
    folds, precisions, chances = [], [], []
    for queries in (np.arange(12), np.arange(12, 30)):
        others = np.setdiff1d(np.arange(30), queries)
        sides = labels.take(queries), labels.take(others)
        folds.append(
            evaluate_fold(queries, codes[queries], {"learned": codes[others]}, *sides, bits=6, k=None, divisor="min")
        )
        ranking = Ranking(codes[queries], codes[others], *sides, bits=6)
        precisions.append(ranking.average_precisions())
        chances.append(np.full(len(queries), ranking.chance()))
    found = pool(folds, labels, 1.5)
    column, every = found.columns["learned"], np.concatenate(precisions)
    assert column.map_expected == pytest.approx(every.mean())
    assert column.map_interval[0] < column.map_expected < column.map_interval[1]
    assert column.map_classes == pytest.approx(np.mean([every[labels.ids == number].mean() for number in range(3)]))
    assert column.chance == pytest.approx(np.concatenate(chances).mean())
    assert (found.folds, found.queries, found.database, found.seconds) == (2, 30, 15, 1.5)
    assert set(found.columns) == {"learned", "new"}
