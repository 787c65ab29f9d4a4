"""An evaluation in sentences, for those who want to know how good a search is and not how that is measured."""

from __future__ import annotations

from collections import Counter

from ..utils.words import count
from .columns import Column
from .evaluation import Evaluation
from .examples import NEAREST, Case

_FEW_QUERIES = 20  # one of them moves the share by 5 %
_LEAST = 0.005  # share of a confusion that is worth a word
_LISTED = 3  # confusions, and queries, that are named


def headline(evaluation: Evaluation) -> str:
    """Return how many of the nearest items are right, on average, how sure that is, and what chance gives."""
    column, noun = _searched(evaluation), _noun(evaluation)
    at = max((place for place, k in enumerate(column.ks) if k <= NEAREST), default=0)
    nearest = f"{column.ks[at]} nearest items" if column.ks[at] > 1 else "nearest item"
    kind = "share a label with it" if column.confusions is None else "are of the same kind"
    sure = count(evaluation.queries, noun)
    if column.nearest_interval is not None:
        sure += ", 95 % interval {} to {}".format(*map(_percent, column.nearest_interval))
    few = ", too few to go by" * (evaluation.queries < _FEW_QUERIES)
    similar = sum(column.similar_pairs)
    chance = similar / max(similar + sum(column.dissimilar_pairs), 1)
    return (
        f"Of the {nearest} to an {noun} that it has not seen, {_percent(column.precision[at])} {kind} ({sure}{few}); "
        f"by chance it would be {_percent(chance)}."
    )


def worst_confusions(evaluation: Evaluation) -> str:
    """Return the classes that are most often taken for another; "" where none is, or items have several labels."""
    found = [one for one in _searched(evaluation).confusions or [] if one.share >= _LEAST]
    listed = [f"{one.name} for {one.taken_for} ({_percent(one.share)})" for one in found[:_LISTED]]
    return f"Most often taken for another: {', '.join(listed)}." if listed else ""


def examples(evaluation: Evaluation) -> list[str]:
    """Return what some queries found, a line each: their label, and the labels of their nearest items; none twice."""
    cases = next((cases for cases in evaluation.cases.values() if cases), [])
    return list(dict.fromkeys(map(_example, cases)))[:_LISTED]


def _example(case: Case) -> str:
    counts = Counter(shown.label for shown in case.found)
    found = [f"{number} {label}" if number > 1 else label for label, number in counts.most_common()]
    return f"{case.query.label} found {', '.join(found)}"


def _searched(evaluation: Evaluation) -> Column:
    """Return the column of a search among the items of the database, as they are stored."""
    return next(iter(evaluation.columns.values()))


def _noun(evaluation: Evaluation) -> str:
    shown = [case.query.image for cases in evaluation.cases.values() for case in cases]
    return "image" if any(shown) else "item"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
