"""Schemas of requests and answers: requests are checked by them, and the OpenAPI description shows them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, FailFast, Field, ValidationError, model_validator

from ...index.validation import LONGEST_KEY
from ...search.searcher import SearchOptions
from ..engine.problems import Problem
from .json_limits import SMALL_BODY, JsonLimits, check_json

M = TypeVar("M", bound=BaseModel)

EXAMPLE_CODE, CODE_PATTERN = "a1b2c3", "^[0-9a-fA-F]+$"  # in a description, of the length that codes have there

HexCode = Annotated[
    str,
    Field(
        description="A packed code as hexadecimal digits, two a byte.", pattern=CODE_PATTERN, examples=[EXAMPLE_CODE]
    ),
]
Key = Annotated[str, Field(min_length=1, max_length=LONGEST_KEY, description="An item's key.", examples=["cat/1.jpg"])]
Metadata = Annotated[
    dict[str, Any] | None, Field(description="Any JSON object to keep with an item.", examples=[{"class": "cat"}])
]

MOST_QUERIES = 256  # of one request
_NUMBERS = ("k", "radius")
_INTEGER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_ADVICE = {  # what is expected of a field, and what to do
    "k": "expected a whole number from 1: give how many matches to return, such as 10",
    "radius": "expected a whole number from 0: give how many bits may differ, such as 3, or leave it out",
    "filter": 'expected conditions on metadata: give an object, such as {"class": "cat"}, or leave it out',
    "ranking": "expected hamming or asymmetric: give one of them, or leave it out",
    "rerank": "expected true or false: give one of them, or leave it out",
    "include_self": "expected true or false: give one of them, or leave it out",
    "code": "expected hexadecimal digits: give the code as /v1/encode returns it",
    "key": f"expected a text of 1 to {LONGEST_KEY:,} characters: give an item's key",
    "metadata": 'expected an object: give one, such as {"class": "cat"}, or leave it out',
    "queries": f"expected a list of 1 to {MOST_QUERIES} queries: give each its code or key",
    "items": "expected a list of items, at least one: give each its key and code",
}


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SearchFields(_Request):
    """The options of a search, by code, key or image."""

    k: int = Field(10, ge=1, description="How many matches at most.", examples=[10])
    radius: int | None = Field(None, ge=0, description="Only items within this Hamming distance.", examples=[3])
    filter: dict[str, Any] | None = Field(
        None,
        description='Conditions on metadata: {"class": "cat"}, {"year": {"ge": 2000}}; also eq, ne, in, not_in, lt, '
        'le, gt, and all for a list of them. {"$or": [{…}, {…}]} for filters of which one must be met.',
        examples=[{"class": "cat"}],
    )
    ranking: Literal["hamming", "asymmetric"] = Field(
        "hamming", description="What orders the matches; asymmetric needs an image.", examples=["hamming"]
    )
    rerank: bool | None = Field(
        None,
        description="Whether ties are ordered by visual similarity; by default where that is possible.",
        examples=[False],
    )

    def options(self) -> SearchOptions:
        """Return the options as the library takes them, which refuses those that exclude each other."""
        return SearchOptions(self.k, self.radius, self.filter, self.ranking, self.rerank)


class SearchRequest(SearchFields):
    """A search by a code or by the key of an item."""

    code: HexCode | None = None
    key: Key | None = None
    include_self: bool = Field(
        True, description="Whether the item of `key` may be among its own matches.", examples=[False]
    )

    @model_validator(mode="after")
    def _code_or_key(self) -> SearchRequest:
        if (self.code is None) == (self.key is None):
            raise ValueError("give either code or key; send an image as multipart/form-data, in the field image")
        if self.key is None and not self.include_self:
            raise ValueError("include_self=false leaves out the item of key: give key, or leave include_self out")
        return self

    def options(self) -> SearchOptions:
        """Return the options as the library takes them, which refuses those that exclude each other."""
        return replace(super().options(), include_self=self.include_self)


class BatchQuery(_Request):
    """One query of several."""

    code: HexCode | None = None
    key: Key | None = None

    @model_validator(mode="after")
    def _code_or_key(self) -> BatchQuery:
        if (self.code is None) == (self.key is None):
            raise ValueError("give each query either code or key")
        return self


class BatchRequest(SearchFields):
    """Searches by codes or keys, with the same options."""

    queries: Annotated[list[BatchQuery], FailFast()] = Field(min_length=1, max_length=MOST_QUERIES)
    include_self: bool = Field(True, description="Whether items of `key` may be among their own matches.")


class Match(BaseModel):
    """One item of a search's answer."""

    key: Key
    distance: float
    metadata: Metadata
    code: HexCode


class Guess(BaseModel):
    """A label that the query probably has, from a vote of the items around it."""

    label: str
    share: float = Field(
        description="The weight of the items with this label, divided by that of all items; an item at distance d "
        "weighs exp(-16 d / bits). Large where the items of this label are much nearer than all others."
    )
    items: int = Field(
        description="How many items vote: all of the index, or an even sample of it; not the item of `key`."
    )
    field: str = Field(description="The field of the metadata that the label is a value of.")


class SearchAnswer(BaseModel):
    """The matches of a search, nearest first, and what they say of the query."""

    code: HexCode = Field(description="The code that was searched for.")
    bits: int
    ranking: Literal["hamming", "asymmetric"]
    reranked: bool = Field(description="Whether ties are in the order of visual similarity.")
    guess: Guess | None = Field(
        None,
        description="None where items have no labels, for a search with a filter, and in an index on a server of 4,096 "
        "items or more.",
    )
    nearest: int | None = Field(
        None,
        description="Where a radius finds nothing, how many bits the nearest item is away, of those that meet the "
        "filter; otherwise, and where there is none, None.",
    )
    familiarity: float | None = Field(
        None,
        description="Of a search by image: the share of items of known classes that look no more familiar. Below .01 "
        "the image probably shows something that the model has not seen. None where the model cannot say.",
    )
    matches: list[Match]


class BatchAnswer(BaseModel):
    """The answers of several searches, in the order of the queries."""

    answers: list[SearchAnswer]


class FilterRequest(_Request):
    """Conditions on metadata."""

    filter: dict[str, Any] = Field(description="As for a search.", examples=[{"class": "cat"}])


class Count(BaseModel):
    """How many items meet the conditions."""

    items: int


class Removed(BaseModel):
    """How many items were removed."""

    removed: int


class PatchRequest(_Request):
    """Fields of an item's metadata."""

    metadata: dict[str, Any] = Field(
        description="Values to set; null removes a field. Others stay.", examples=[{"class": "lynx", "seen": None}]
    )


class EncodeAnswer(BaseModel):
    """The code of an image."""

    code: HexCode
    bits: int
    outputs: list[float] = Field(description="The network's outputs, bit by bit; their signs are the code.")


class ItemRequest(_Request):
    """An item to store."""

    code: HexCode
    metadata: Metadata = None


class KeyedItem(ItemRequest):
    """An item to store, with its key."""

    key: Key


class ItemsRequest(_Request):
    """Items to store, all of them or none."""

    items: Annotated[list[KeyedItem], FailFast()] = Field(min_length=1)


class Item(BaseModel):
    """An item as it is stored."""

    key: Key
    code: HexCode
    metadata: Metadata


class ItemPage(BaseModel):
    """Some items."""

    items: list[Item]
    cursor: str | None = Field(description="What to send for the next page; null after the last one.")


class Stored(BaseModel):
    """An item that was stored."""

    key: Key
    code: HexCode
    new: bool = Field(description="False where it replaced one.")


class StoredItems(BaseModel):
    """Items that were stored."""

    new: int
    replaced: int


class CorrectItem(_Request):
    """The right labels of an item, or that those it has are wrong."""

    key: Key
    labels: list[str] | None = Field(None, description="Its right labels.", examples=[["lynx"]])
    wrong: bool = Field(False, description="Whether its labels are wrong, and the right ones not known.")

    @model_validator(mode="after")
    def _labels_or_wrong(self) -> CorrectItem:
        if (self.labels is None) == (not self.wrong):
            raise ValueError("give either labels, or wrong=true")
        return self


class CorrectionRequest(_Request):
    """Corrections of items, all of them or none."""

    items: Annotated[list[CorrectItem], FailFast()] = Field(min_length=1)
    who: str = Field("", max_length=100, description="Who says so.", examples=["Kim"])


class CorrectedItem(BaseModel):
    """What a correction did to an item."""

    key: Key
    before: list[str]
    labels: list[str]
    code_changed: bool = Field(description="Whether it got the code of its labels; false where the model has none.")


class CorrectionAnswer(BaseModel):
    """A correction."""

    number: int
    who: str
    when: str
    items: list[CorrectedItem]


class OpenCorrections(BaseModel):
    """The corrections that no update of the model has used yet."""

    corrections: list[CorrectionAnswer]


class Reloaded(BaseModel):
    """The model that answers."""

    model: str = Field(description="Its fingerprint.")
    changed: bool = Field(description="Whether it is another than before.")


class ErrorAnswer(BaseModel):
    """Why a request failed, in one sentence."""

    detail: str
    request_id: str | None


def parse_json(model: type[M], body: bytes, limits: JsonLimits = SMALL_BODY) -> M:
    """Parse a JSON body.

    Args:
        model: Its schema.
        body: The JSON.
        limits: What is refused before it is validated, since each error in it would be described.

    Raises:
        Problem: It says in one sentence what is wrong with the body.
    """
    values = check_json(body, model.model_fields, limits)
    try:
        if values is not None:
            return model.model_validate(values, strict=True)
        return model.model_validate_json(body, strict=True)
    except ValidationError as problem:
        raise Problem(422, describe_error(problem)) from None


def parse_fields(model: type[M], fields: dict[str, Any]) -> M:
    """Parse the fields of a form, which are texts, in the same way."""
    values = dict(fields)
    for name in _NUMBERS:
        text = values.get(name)
        if isinstance(text, str):  # digits alone, as in JSON: Python would read 1_0 and 5.0 as well
            if _INTEGER.fullmatch(text) is None:
                raise Problem(422, f"{name}={truncate(text)}: {_ADVICE[name]}")
            values[name] = int(text)
    try:
        return model.model_validate(values)
    except ValidationError as problem:
        raise Problem(422, describe_error(problem)) from None


def describe_error(problem: ValidationError) -> str:
    """Describe the first error in one sentence: where, what was given, what was expected, what to do."""
    first = problem.errors(include_url=False)[0]
    at = ".".join(str(part) for part in first["loc"])
    text = first["msg"].removeprefix("Value error, ")
    if first["type"] == "json_invalid":
        return f"the body is not JSON ({text.removeprefix('Invalid JSON: ')}): send a JSON object"
    if first["type"] == "missing":
        return f"{at} is missing: add it"
    if first["type"] == "extra_forbidden":
        return f"{at} is not known here: leave it out"
    if not at:
        return text if first["type"] == "value_error" else f"{text}: send a JSON object"
    named = next((part for part in reversed(first["loc"]) if isinstance(part, str)), "")
    advice = _ADVICE.get(named) if isinstance(first["loc"][-1], str) else None
    return f"{at}={truncate(first['input'])}: {advice or f'{text[:1].lower()}{text[1:]}: see /docs'}"


def truncate(value: Any) -> str:
    """Return a value as it was given, cut off where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
