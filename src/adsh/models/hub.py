"""Models on a hub that huggingface_hub speaks to: `adsh.load("owner/name")` and `model.push_to_hub("owner/name")`.

What is downloaded is cached and found again without a network, as huggingface_hub does it; $HF_ENDPOINT, $HF_HOME,
$HF_HUB_OFFLINE and $HF_TOKEN are its own.
"""

from __future__ import annotations

import copy
import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from .. import __version__
from ..errors import FolderError, InputError, MissingExtraError, ServerError, first_line
from ..utils.reading import read_json
from .card import with_accuracy
from .storage_format import CARD, CONFIG, FORMATS

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_REPORT = ("report/report.json", "report.json")  # of a run's folder, or a report's
_FILES = sorted({CONFIG, CARD, *(name for each in FORMATS.values() for name in (*each.files, *each.optional))})


class PushOptions(TypedDict, total=False):
    """What `push_to_hub` also takes.

    report      a run's folder, or a report's: its figures go into the model card
    private     whether a new repository is private; the hub's default unless given
    revision    the branch to push to; `main` unless given
    message     of the commit
    items       whether the items kept for updates, some of the training data, go along; they do not unless True
    """

    report: str | Path | None
    private: bool | None
    revision: str | None
    message: str
    items: bool


class OnHub:
    """A model that can be pushed to a hub."""

    def push_to_hub(self, name: str, **options: Unpack[PushOptions]) -> str:
        """Save the fitted model to a repository on a hub, with a model card; return the address of the commit.

        Args:
            name: owner/name; created where it is missing.
            **options: report, a run's folder, whose figures go into the card; private, revision, message, and items,
                whether the items kept for updates, some of the training data, go along.

        Returns:
            The address of the commit.
        """
        self._check_fitted()
        return push(self, name, **options)

    if TYPE_CHECKING:
        _check_fitted: Any


def is_hub_name(folder: str | Path) -> bool:
    """Return whether this names a model on a hub: owner/name, where there is no such folder."""
    return isinstance(folder, str) and _NAME.fullmatch(folder) is not None and not Path(folder).exists()


def download(name: str, revision: str | None = None, cache: str | Path | None = None, *, offline: bool = False) -> Path:
    """Return the folder of a model on the hub, downloaded to the cache unless it is there.

    Args:
        name: owner/name.
        revision: a branch, tag or commit; `main` unless given.
        cache: the folder of the cache; huggingface_hub's unless given.
        offline: take it from the cache alone.

    Returns:
        The folder of that revision.
    """
    hub = _hub(f"{name} is no folder; to load it from a hub")
    with _explained(name):
        found = hub.snapshot_download(
            name, revision=revision, cache_dir=cache, local_files_only=offline, allow_patterns=_FILES,
            endpoint=os.environ.get("HF_ENDPOINT"), library_name="adsh", library_version=__version__,
        )  # fmt: skip
    return Path(found)


def push(model: Any, name: str, **options: Unpack[PushOptions]) -> str:
    """Save a fitted model to a repository on the hub, which is created where it is missing.

    Args:
        model: what to push.
        name: owner/name.
        **options: see `PushOptions`.

    Returns:
        The address of the commit.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name on a hub: give owner/name")
    hub = _hub("pushing to a hub")
    report = _read_report(options.get("report"))
    pushed: Any = copy.copy(model)
    if not options.get("items") and getattr(pushed, "replay_", None) is not None:
        pushed.replay_ = None
    with tempfile.TemporaryDirectory() as scratch, _explained(name):
        folder = Path(scratch) / "model"
        pushed.save(folder)
        card = folder / CARD
        written = card.read_text(encoding="utf-8") if card.exists() else _plain_card(model)
        card.write_text(hub_card(model, name, written, report), encoding="utf-8")
        api = hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"), library_name="adsh", library_version=__version__)
        api.create_repo(name, private=options.get("private"), exist_ok=True)
        revision = options.get("revision")
        if revision is not None:
            api.create_branch(name, branch=revision, exist_ok=True)
        done = api.upload_folder(
            repo_id=name, folder_path=folder, revision=revision,
            commit_message=options.get("message", f"{model.bits} bits, by adsh {__version__}"),
        )  # fmt: skip
    return str(done.commit_url)


def hub_card(model: Any, name: str, card: str, report: dict[str, dict[str, Any]]) -> str:
    """Return a model card with the header that hubs read, and the figures of a report.

    Args:
        model: what the card is of.
        name: owner/name.
        card: the card so far.
        report: the columns of an evaluation, by name; empty for none.

    Returns:
        The card in Markdown.
    """
    maps = {column: float(figures["map_expected"]) for column, figures in report.items()}
    lines = ["---", "library_name: adsh", "pipeline_tag: image-feature-extraction", "tags:"]
    tags = ("adsh", "hashing", "image-retrieval", f"method:{model.name}", f"bits:{model.bits}")
    lines += [f"- {tag}" for tag in tags]
    if maps:
        lines += ["model-index:", f"- name: {json.dumps(name)}", "  results:"]
        lines += ["  - task:", "      type: image-retrieval", "    dataset:", "      name: held-out queries"]
        lines += ["      type: own", "    metrics:"]
        for column, value in maps.items():
            lines += ["    - type: map", f"      name: {json.dumps(f'MAP, {column}')}", f"      value: {value:.4f}"]
    body = card.replace('adsh.load("this folder")', f'adsh.load("{name}")')
    if maps:
        rows = "\n".join(f"| {column} | {value:.4f} |" for column, value in maps.items())
        body = with_accuracy(body, f"| database codes | MAP |\n| --- | --- |\n{rows}")
    return "\n".join([*lines, "---", "", body])


def _plain_card(model: Any) -> str:
    return f'# {model.name}, {model.bits} bits\n\nLearned with adsh {__version__}: `adsh.load("this folder")`.\n'


def _read_report(folder: str | Path | None) -> dict[str, dict[str, Any]]:
    """Return the columns of the first evaluation of a report; empty where none is asked for."""
    if folder is None:
        return {}
    path = next((Path(folder) / name for name in _REPORT if (Path(folder) / name).is_file()), None)
    if path is None:
        raise FolderError(f"{folder} holds no report: write one with adsh evaluate, or leave report= out")
    try:
        columns: dict[str, dict[str, Any]] = read_json(path)["evaluations"][0]["columns"]
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        raise FolderError(f"{path} is no report of adsh: write it again with adsh evaluate") from None
    return columns


def _hub(what: str) -> ModuleType:
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError(f"{what}, huggingface_hub is needed: pip install 'adsh[hub]'") from None
    return huggingface_hub


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn the errors of huggingface_hub into one line of ours."""
    from huggingface_hub import errors

    try:
        yield
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError) as problem:
        raise FolderError(
            f"{name} is neither a folder nor a model on the hub ({first_line(problem)}): check the name and revision"
        ) from None
    except errors.LocalEntryNotFoundError as problem:
        raise ServerError(
            f"{name} is not in the cache, and the hub cannot be reached ({first_line(problem)}): connect once, or give "
            "a folder"
        ) from None
    except (errors.HfHubHTTPError, OSError) as problem:
        if isinstance(problem, FolderError):
            raise
        raise ServerError(f"the hub refused {name} ({first_line(problem)}): check the token and the name") from None
