"""The command line: one file a verb. Nothing here imports torch until a verb needs it."""

from .app import main

__all__ = ["main"]
