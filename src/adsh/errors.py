"""Every error a user can meet: what was given, what was expected, what to do."""


class AdshError(Exception):
    """The root of this package's errors: catch it to catch them all."""


class InputError(AdshError, ValueError):
    """An argument, array or label that cannot be used as given."""


class NotFittedError(AdshError, AttributeError):
    """Something learned was asked for before `fit`."""


class TrainingError(AdshError, RuntimeError):
    """Training could not go on, for instance because the outputs stopped being finite."""


class PeerLostError(TrainingError):
    """Another process of a run that several share is gone, so this one cannot go on."""


class ExportError(AdshError, RuntimeError):
    """An exported model does not give what the model gives."""


class FolderError(AdshError, OSError):
    """A folder, of a model or a report, that cannot be read or written."""


class BusyError(AdshError, TimeoutError):
    """Another process kept writing to an index for longer than was waited."""


class ServerError(AdshError, ConnectionError):
    """A server, of a database or a cluster, that cannot be reached, or does not hold or allow what is needed."""


class MissingExtraError(AdshError, ImportError):
    """An optional dependency is not installed; the message holds the command that adds it."""


def first_line(problem: BaseException) -> str:
    """What another library's error says, for use inside one of these."""
    return (str(problem).splitlines() or [type(problem).__name__])[0]


class AdshWarning(UserWarning):
    """Something was changed or left out, and the user should know."""
