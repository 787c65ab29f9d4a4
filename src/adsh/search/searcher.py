"""The rules of search, the same for `adsh search` and for the service.

SearchOptions     how to search; refuses combinations that exclude each other
EncodedQueries    the queries as codes, with the outputs and vectors that some options need
Searcher          decides which of these a search uses, and runs it on an index
Answer            what was found for a query, with a guess of what the query shows

The service answers many requests together, so it calls `Searcher.plan` and `Searcher.answer` itself; `Searcher.search`
is for matches alone. Needs no torch.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset
from ..data.match_input import resize_for_model
from ..errors import AdshWarning, InputError
from ..hamming.bits import Codes, pack
from ..index import Index, Matches
from ..index.filters import OR
from ..index.matches import StoredVectors
from ..models.protocol import familiarity_of
from .guess import Guess, Guesser

if TYPE_CHECKING:
    from ..models.protocol import ItemEncoder

RANKINGS = ("hamming", "asymmetric")
UNFAMILIAR = 0.01  # a query that looks less familiar than all but 1 in 100 known items probably shows something else

_NEAREST, _SAMPLE = 100, 1000  # items looked at to explain why a filter matches nothing
_LISTED = 8  # names in a message

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class SearchOptions:
    """How to search.

    Attributes:
        k: The number of matches for each query, at most.
        radius: Only items within this Hamming distance.
        where: Conditions on metadata, as `Index.search` takes them.
        ranking: "hamming" orders items by the bits that differ; "asymmetric" by the network's real-valued outputs.
        rerank: Whether items of equal distance are ordered by feature vectors. By default where query and index have
            them; True refuses a search where one has none.
        include_self: Whether a query that is an item of the index may be among its own matches.
    """

    k: int = 10
    radius: int | None = None
    where: dict[str, Any] | None = None
    ranking: str = "hamming"
    rerank: bool | None = None
    include_self: bool = True

    def __post_init__(self) -> None:
        if self.ranking not in RANKINGS:
            raise InputError(f'ranking={self.ranking!r} is unknown: choose "hamming" or "asymmetric"')
        if self.radius is not None and (self.ranking != "hamming" or self.rerank):
            raise InputError("a radius counts bits: leave out ranking asymmetric and rerank, or the radius")

    @property
    def orders_ties(self) -> bool:
        """Whether vectors order items of equal distance, where query and index have them."""
        return self.ranking == "hamming" and self.radius is None and self.rerank is not False


@dataclass(frozen=True)
class EncodedQueries:
    """Queries as a model encoded them, one a row."""

    codes: Codes  # (n, bytes) packed
    outputs: Floats | None = None  # (n, bits); None for queries given as codes or keys, and models without outputs
    vectors: Floats | StoredVectors | None = None  # (n, d); None where there are none
    keys: Sequence[str] | None = None  # of the queries, where they are items of the index
    familiarity: Sequence[float] | None = None  # how familiar each looks; None where the model cannot say


@dataclass(frozen=True)
class SearchPlan:
    """A search that was checked: the options, and the parts of the queries that it uses."""

    options: SearchOptions
    codes: Codes
    outputs: Floats | None  # given where they rank the items
    vectors: Floats | StoredVectors | None  # given where they order ties
    keys: Sequence[str] | None = None  # given where the queries are items of the index
    familiarity: Sequence[float] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether only codes are compared, which takes microseconds."""
        options = self.options
        return options.radius is None and options.where is None and self.outputs is None and self.vectors is None

    @property
    def count(self) -> int:
        """How many items to find for a query, so that its answer has k."""
        return self.options.k + (self.keys is not None and not self.options.include_self)


@dataclass(frozen=True)
class Answer:
    """What a search found for one query.

    Attributes:
        matches: The items, nearest first.
        guess: A label that the query probably has, as `Guesser` defines it. None where it has none, and for a search
            with conditions on metadata, which a guess would contradict.
        nearest: Where a radius finds nothing, the distance of the nearest item that meets the conditions; otherwise,
            and where there is none, None.
        familiarity: The share of items of known classes that look no more familiar than the query. Below
            `UNFAMILIAR` it probably shows something else. None where the model cannot say.
    """

    matches: Matches
    guess: Guess | None = None
    nearest: int | None = None
    familiarity: float | None = None


class Searcher:
    """Search an index."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self._guesser = Guesser(index)

    def search(self, queries: EncodedQueries, options: SearchOptions) -> list[Matches]:
        """Return the matches of each query, nearest first; warn where a filter is probably a typo."""
        plan = self.plan(queries, options)
        found = [_matches_of(plan, row, items) for row, items in enumerate(self.run(plan))]
        if options.where and not any(map(len, found)):
            self._warn_of_unknown_values(queries.codes, options.where)
        return found

    def nearest_distance(
        self, codes: Codes, where: dict[str, Any] | None = None, without: str | None = None
    ) -> int | None:
        """Return how many bits the nearest item is away from a code, such as where a radius finds none.

        Args:
            codes: (1, bytes) packed, of the query.
            where: Conditions on metadata.
            without: The key of an item that does not count.

        Returns:
            The distance; None where no item meets the conditions.
        """
        [found] = self.index.search(codes, 1 if without is None else 2, where=where)
        others = [row for row, key in enumerate(found.keys) if key != without]
        return int(found.distances[others[0]]) if others else None

    def plan(self, queries: EncodedQueries, options: SearchOptions) -> SearchPlan:
        """Check that the queries have what the options need, and leave out what they do not use."""
        if options.ranking == "asymmetric" and queries.outputs is None:
            raise InputError(
                "ranking asymmetric compares a network's real-valued outputs: search by image with a model that has a "
                "network, or use ranking hamming"
            )
        if options.rerank and queries.vectors is None:
            raise InputError("there is no vector to order ties by: search by image or key, or leave rerank out")
        if options.rerank and not self.index.has_vectors:
            raise InputError("the index holds no vectors to order ties by: build it with vectors, or leave rerank out")
        reranked = options.orders_ties and queries.vectors is not None and self.index.has_vectors
        return SearchPlan(
            options,
            queries.codes,
            queries.outputs if options.ranking == "asymmetric" else None,
            queries.vectors if reranked else None,
            queries.keys,
            queries.familiarity,
        )

    def answer(self, plan: SearchPlan) -> list[Answer]:
        """Return the matches of each query with a guess and, where a radius finds nothing, how far the nearest is."""
        return [self.complete(plan, row, found) for row, found in enumerate(self.run(plan))]

    def complete(self, plan: SearchPlan, row: int, found: Matches) -> Answer:
        """Return the answer to a query whose search was run elsewhere, such as together with others.

        Args:
            plan: The search.
            row: The number of the query in it.
            found: The `plan.count` nearest items that meet its conditions.
        """
        options, own_key = plan.options, plan.keys[row] if plan.keys is not None else None
        code, matches = plan.codes[row : row + 1], _matches_of(plan, row, found)
        guess = self._guesser(code, own_key) if options.where is None else None
        nearest = None
        if options.radius is not None and not len(matches):
            nearest = self.nearest_distance(code, options.where, None if options.include_self else own_key)
        return Answer(matches, guess, nearest, None if plan.familiarity is None else plan.familiarity[row])

    def run(self, plan: SearchPlan) -> list[Matches]:
        """Return the `plan.count` nearest items of each query, from which `complete` takes its answer."""
        options, index = plan.options, self.index
        if options.radius is not None:
            return index.within(plan.codes, options.radius, where=options.where, limit=plan.count)
        if plan.outputs is not None:
            return index.search(plan.outputs, plan.count, where=options.where, ranking="asymmetric")
        return index.search(
            plan.codes, plan.count, where=options.where, vectors=plan.vectors, rerank=plan.vectors is not None
        )

    def _warn_of_unknown_values(self, codes: Codes, where: dict[str, Any]) -> None:
        """Warn when a filter names a field or value that no sampled item has: it is probably a typo."""
        nearest = [metadata for matches in self.index.search(codes, _NEAREST) for metadata in matches.metadata]
        known: dict[str, set[str]] = {}  # values by field
        for metadata in [*nearest, *(item.metadata for item in self.index.sample(_SAMPLE))]:
            for name, value in (metadata or {}).items():
                known.setdefault(name, set()).update(map(str, value if isinstance(value, list) else [value]))
        for name, condition in where.items():
            if name == OR:
                continue
            if name not in known:
                text = f"no sampled item has the field {name!r}: the fields are {join_some(known)}"
            else:
                unknown = [values for values in _equalities(condition) if not values & known[name]]
                if not unknown:
                    continue
                text = f"no sampled item has {name}={min(unknown[0])}: its values are {join_some(known[name])}"
            warnings.warn(text, AdshWarning, stacklevel=3)


def _matches_of(plan: SearchPlan, row: int, found: Matches) -> Matches:
    """Return the matches that a query's answer has, of the items found for it."""
    options = plan.options
    if plan.keys is None or options.include_self:
        return found
    others = [at for at, key in enumerate(found.keys) if key != plan.keys[row]]
    return found.select(others[: options.k])


def _equalities(condition: Any) -> list[set[str]]:
    """Return the values that each equality of a condition accepts, as texts."""
    tests = condition if isinstance(condition, dict) else {"eq": condition}
    accepted = [{str(tests["eq"])}] if "eq" in tests else []
    accepted += [set(map(str, tests["in"]))] if tests.get("in") else []
    return accepted + [values for one in tests.get("all", ()) for values in _equalities(one)]


def encode_queries(model: ItemEncoder, queries: Dataset) -> EncodedQueries:
    """Encode images or features with a model, resized as the model takes them."""
    items = resize_for_model(queries, model.input_shape_)
    if not model.has_bounded_outputs:
        codes, features = model.encode_with_features(items)
        return EncodedQueries(codes, vectors=features)
    outputs, features = model.outputs_with_features(items)
    found = familiarity_of(model, items, features)
    return EncodedQueries(pack(outputs), outputs, features, familiarity=None if found is None else found.tolist())


def join_some(names: Iterable[str]) -> str:
    """Return the first few names in order, for a message."""
    listed = sorted(names)
    return ", ".join([*listed[:_LISTED], "…"] if len(listed) > _LISTED else listed) or "none"
