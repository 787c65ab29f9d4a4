"""Where items come from: published data sets by name, folders, lists and arrays by path."""

from .registry import NAMED, open_source

__all__ = ["NAMED", "open_source"]
