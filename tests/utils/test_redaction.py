"""Paths of this machine stay out of what strangers see."""

from __future__ import annotations

from adsh.utils.redaction import is_absolute_path, redact_paths


def test_absolute_paths_are_left_out_and_all_else_stays():
    values = {"file": "/home/me/1.jpg", "source": "digits", "url": "https://a/b", "at": 3, "tags": ["/x"], "no": None}
    assert redact_paths(values) == {name: values[name] for name in ("source", "url", "at", "tags", "no")}


def test_only_the_named_fields_are_redacted():
    values = {"file": "/home/me/1.jpg", "route": "/v1/search", "root": "photos"}
    assert redact_paths(values, ("file", "root")) == {"route": "/v1/search", "root": "photos"}


def test_the_values_themselves_are_not_changed():
    values = {"file": "/home/me/1.jpg"}
    redact_paths(values)
    assert values == {"file": "/home/me/1.jpg"}


def test_texts_and_numbers_are_not_paths():
    assert [is_absolute_path(value) for value in ("/a", "a/b", "", 3, None, ["/a"])] == [True] + [False] * 5
