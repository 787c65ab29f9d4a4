"""URLs of servers: options in their query, and how to print them without passwords."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, unquote, urlencode

from ..errors import InputError

_SECRETS = ("password", "sslpassword", "token", "passfile", "sslkey")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,39}")


def is_address(location: object) -> bool:
    """Return whether this is a URL, and not a folder."""
    return "://" in str(location)


def shown(location: object) -> str:
    """Return a location as it may be printed: a URL without its password."""
    text = str(location)
    if not is_address(text):
        return text
    scheme, _, rest = text.partition("://")
    # what a password may hold unquoted is hidden too: all up to the last @ before the query
    before, question, query = rest.partition("?")
    user, at, place = before.rpartition("@")
    public = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name not in _SECRETS]
    options = urlencode(public, safe="/", errors="replace")  # of a text that is no Unicode, too
    return f"{scheme}://{user.partition(':')[0]}{at}{place}{question if public else ''}{options}"


def secrets_of(address: str) -> list[str]:
    """Return the secrets in a URL, as they are written and as they are decoded."""
    before, _, query = address.partition("://")[2].partition("?")
    found = [before.rpartition("@")[0].partition(":")[2]]
    found += [value for name, value in parse_qsl(query) if name in _SECRETS]
    every = {form for one in found for form in (one, unquote(one), quote(unquote(one), safe="", errors="replace"))}
    return sorted((one for one in every if one), key=len, reverse=True)


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a message with the secrets replaced, so that it may be printed."""
    for secret in secrets:
        text = text.replace(secret, "…")
    return text


def check_address(address: str) -> str:
    """Return the URL; raise where a password is written such that part of it would be taken for a host."""
    user = address.partition("://")[2].partition("?")[0].rpartition("@")[0]
    if "@" in user or "/" in user:
        raise InputError(f"{shown(address)} has @ or / before its host: write them as %40 and %2F in a password")
    return address


def options_of(address: str, names: Iterable[str]) -> tuple[str, dict[str, str]]:
    """Return the URL without these options of its query, and the options."""
    before, _, query = address.partition("?")
    pairs = [part.partition("=") for part in query.split("&") if part]
    rest = "&".join(f"{name}{sign}{value}" for name, sign, value in pairs if name not in names)
    options = {name: unquote(value) for name, _, value in pairs if name in names}
    return before + ("?" + rest if rest else ""), options


def check_name(what: str, name: str) -> str:
    """Return a table name that needs no quoting in any database."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{what}={name!r}: give a name of at most 40 lower-case letters, digits and _, such as photos")
    return name
