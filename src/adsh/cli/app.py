"""The entry point: all commands, and one line for every error.

Exit status: 0; 2 with one line for an error that the user can correct; 1 with one line for another, such as a server
that cannot be reached or a full disk, and with a traceback for a bug; 3 for a process that ends because another one of
its run did; 130 after Ctrl-C or a request to stop.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import (
    EXIT_FAILURE,
    EXIT_MISTAKE,
    EXIT_PEER_LOST,
    EXIT_STOPPED,
    AdshError,
    AdshWarning,
    PeerLostError,
    first_line,
)
from ..train.launch import parent_reports
from ..utils.progress import say
from ..utils.urls import is_address, secrets_of, without_secrets
from . import (
    compare,
    data,
    demo,
    doctor,
    encode,
    evaluate,
    export,
    features,
    index_items,
    info,
    reproduce,
    search,
    serve,
    train,
    tune,
    update,
)
from .show import Stopped

COMPLETE = "_ADSH_COMPLETE"  # what a shell sets to be told completions

UsageProblem: type[Exception] = typer.BadParameter.__mro__[2]  # click's ClickException, wherever this typer keeps click

# The order of `adsh --help`: what users need first comes first.
ORDER = (
    *("demo", "train", "update", "search", "index", "serve", "evaluate", "info", "data", "encode", "features"),
    *("export", "tune", "compare", "reproduce", "doctor"),
)


class _Ordered(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in that order."""
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    name="adsh",
    cls=_Ordered,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich alone would take the time that help may take
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (
    *(demo, features, train, update, encode, evaluate, compare, info, search, serve, export, reproduce, doctor),
    tune,
):
    app.command(verb.__name__.rpartition(".")[2], epilog=f"Example:  {verb.EXAMPLE}")(verb.command)
app.add_typer(data.app)
app.add_typer(index_items.GROUP)


@app.callback(invoke_without_command=True, epilog="Start here:  adsh demo")
def adsh(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", "-V", help="Print the version and exit."),
) -> None:
    """Learn short binary codes for labelled images, and search millions of them from a few bytes each."""
    if version:
        print(f"adsh {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())


def main() -> NoReturn:
    """Run the command line of this process."""
    signal.signal(signal.SIGTERM, _stop)
    warnings.showwarning = _one_line
    try:
        status = app(prog_name="adsh", standalone_mode=False) or 0
        sys.stdout.flush()
    except (Stopped, typer.Abort) as stop:
        _say(str(stop) or "stopped")
        status = EXIT_STOPPED
    except UsageProblem as problem:
        status = _usage(problem)
    except (BrokenPipeError, SystemExit) as stop:  # the reader of a pipe was closed; typer exits by itself then
        if COMPLETE in os.environ:  # what a shell completes was printed
            sys.stdout.flush()
            sys.exit(stop.code if isinstance(stop, SystemExit) else 0)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    except PeerLostError as problem:
        if not parent_reports():
            _say(first_line(problem))
        status = EXIT_PEER_LOST
    except ModuleNotFoundError as problem:
        if problem.name != "torch":
            raise
        _say(
            "this needs torch, which is not installed: pip install 'adsh[train]'; without it, doctor, serve, and "
            "search and index add with --model FOLDER of adsh export work"
        )
        status = EXIT_MISTAKE
    except (AdshError, OSError) as problem:
        _say(first_line(problem))
        status = problem.exit_status if isinstance(problem, AdshError) else EXIT_FAILURE
    except MemoryError as problem:
        _say(f"there is not enough memory ({first_line(problem)}): give fewer or smaller items")
        status = EXIT_FAILURE
    except UnicodeError as problem:
        _say(f"a name holds bytes that are not text ({first_line(problem)}): rename the file or folder")
        status = EXIT_MISTAKE
    sys.exit(status)


def _say(text: str) -> None:
    """Print one line, without the passwords of any URL that was given: it may stand where no URL was expected."""
    say(without_secrets(text, (secret for word in sys.argv[1:] if is_address(word) for secret in secrets_of(word))))


def _usage(problem: Any) -> int:
    """Report a flag that is wrong, unknown or missing; return the exit status."""
    path = problem.ctx.command_path if getattr(problem, "ctx", None) else "adsh"
    text = " ".join(problem.format_message().split()).rstrip(".")
    _say(f"{text}; see {path} --help")
    return EXIT_MISTAKE


def _one_line(message: Warning | str, category: type[Warning], filename: str = "", *_: Any, **__: Any) -> None:
    text = first_line(message) if isinstance(message, Warning) else message
    if Path(filename).parent.name == "PIL":  # an image with broken metadata, or a large one
        if category.__name__ != "DecompressionBombWarning":  # data.images.decode has a limit of its own
            from ..data.images.decode import image_being_decoded

            _say(f"note: {image_being_decoded() or 'an image'}: {text.strip().rstrip('.')}; its pixels are used")
        return
    _say(f"note: {text}" if issubclass(category, AdshWarning) else f"note: {category.__name__}: {text}")


def _stop(*_: Any) -> NoReturn:
    raise KeyboardInterrupt
