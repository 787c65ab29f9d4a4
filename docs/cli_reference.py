"""Every command and flag as Markdown, read from the commands themselves when the docs are built."""

from __future__ import annotations

import re
from typing import Any

import typer

from adsh.cli.app import app


def markdown() -> str:
    """A section for each command, in the order of `adsh --help`."""
    group: Any = typer.main.get_command(app)
    context = group.context_class(group, info_name="adsh")
    parts = [
        f"## {name_of(one)}\n\n{section(one)}" for one in commands(context) if not hasattr(one.command, "commands")
    ]
    return "\n\n".join(parts)


def commands(context: Any) -> list[Any]:
    """The context of each command, those of a group after it."""
    found = []
    for name in context.command.list_commands(context):
        one = context.command.get_command(context, name)
        inner = one.context_class(one, info_name=name, parent=context)
        found += [inner, *(commands(inner) if hasattr(one, "commands") else [])]
    return found


def name_of(context: Any) -> str:
    """As it is typed: adsh index build."""
    return str(re.split(r"\s+[\[{<(]", context.command_path)[0])


def section(context: Any) -> str:
    """What a command does, an example, and a table of what it takes."""
    command = context.command
    text = [_escaped(" ".join(part.split())) for part in (command.help or "").split("\n\n")]
    usage = command.get_usage(context).removeprefix("Usage: ")
    example = (command.epilog or "").partition("Example:")[2].strip()
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record and "--help" not in record[0]:
            description, default = _default(" ".join(record[1].split()))
            rows.append(f"| `{record[0]}` | {_cell(_escaped(description))} | {_cell(default)} |")
    table = ["| | what | default |", "| --- | --- | --- |", *rows] if rows else []
    shown = ["```text", usage, *([f"e.g.   {example}"] if example else []), "```"]
    return "\n\n".join(["\n".join(shown), *text, "\n".join(table)])


def _default(text: str) -> tuple[str, str]:
    """A parameter's text without what stands in brackets at its end, and that."""
    found = re.search(r"\s*\[((?:default|required|env var|\d|x)[^\[\]]*)\]$", text)
    return (text[: found.start()], found[1].removeprefix("default: ")) if found else (text, "")


def _escaped(text: str) -> str:
    return re.sub(r"([<>_*\[\]])", r"\\\1", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
