"""The errors of this package. A message says what was given, what was expected, and what to do."""

from typing import ClassVar

EXIT_FAILURE = 1  # exit statuses of the command line: it is not the user's,
EXIT_MISTAKE = 2  # the user can mend it,
EXIT_PEER_LOST = 3  # the process ended because another one of its run did,
EXIT_STOPPED = 130  # and Ctrl-C, or a request to stop


class AdshError(Exception):
    """The root of this package's errors: catch it to catch them all. Its message is one line, whatever it quotes."""

    exit_status: ClassVar[int] = EXIT_MISTAKE  # of the command line

    def __str__(self) -> str:
        return " ".join(super().__str__().splitlines())


class InputError(AdshError, ValueError):
    """An argument, array or label cannot be used as given."""


class NotFittedError(AdshError, AttributeError):
    """Something that `fit` learns was requested before it."""


class TrainingError(AdshError, RuntimeError):
    """Training could not continue, for instance because the outputs were no longer finite."""


class PeerLostError(TrainingError):
    """Another process of a distributed run was lost, so this one cannot continue."""


class ExportError(AdshError, RuntimeError):
    """An exported model gives other codes than the model itself."""

    exit_status = EXIT_FAILURE


class FolderError(AdshError, OSError):
    """A folder, such as that of a model or a report, cannot be read or written."""


class BusyError(AdshError, TimeoutError):
    """Another process was writing to an index for longer than the timeout."""

    exit_status = EXIT_FAILURE


class SearchTimeoutError(BusyError):
    """A search took longer than its time limit."""


class ServerError(AdshError, ConnectionError):
    """A database or cluster cannot be reached, or lacks or refuses what is needed."""

    exit_status = EXIT_FAILURE


class MissingExtraError(AdshError, ImportError):
    """An optional dependency is not installed; the message has the command that installs it."""


def first_line(problem: BaseException) -> str:
    """Return the first line of another library's error, for use in a message."""
    return (str(problem).splitlines() or [type(problem).__name__])[0]


class AdshWarning(UserWarning):
    """Something was changed or left out, and the user should know."""
