"""The only file here that knows where things live inside the package: to be changed where they move."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def command_line() -> Any:
    """The tree of commands, as click has it."""
    from typer.main import get_command

    from adsh.cli.app import app

    return get_command(app)


def service_app(folder: Path) -> Any:
    """The service as an app of FastAPI, on an empty index of 24 bits in this folder."""
    import adsh
    from adsh.serve.engine.limits import Limits
    from adsh.serve.engine.service import Service
    from adsh.serve.http.app import create_app

    class Blank:
        """An encoder that is never called."""

        bits, fingerprint, vector_size, size = 24, "", 0, 8

        def encode(self, images: Any) -> Any:
            raise NotImplementedError

        def close(self) -> None:
            """Do nothing."""

    return create_app(Service(Blank(), adsh.open_index(folder / "index", bits=24), Limits(), model=folder))
