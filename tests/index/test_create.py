"""An index is created where that is meant, and a mistyped path is no empty index without a word."""

from __future__ import annotations

import warnings

import pytest

from adsh import open_index
from adsh.errors import AdshWarning, InputError


def test_a_missing_folder_with_bits_is_created_with_a_warning(tmp_path):
    with pytest.warns(AdshWarning, match="there is no index at .*typo, and an empty one is created"):
        open_index(tmp_path / "typo", bits=8).close()
    assert (tmp_path / "typo").is_dir()


def test_nothing_is_said_where_it_is_meant_or_there(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_index(tmp_path / "index", bits=8, create=True).close()
        open_index(tmp_path / "index", bits=8).close()
        open_index(tmp_path / "index").close()


@pytest.mark.parametrize("options", [{}, {"bits": 8, "create": False}])
def test_a_missing_folder_is_refused(tmp_path, options):
    with pytest.raises(InputError, match="there is no index at"):
        open_index(tmp_path / "typo", **options)
    assert not (tmp_path / "typo").exists()
