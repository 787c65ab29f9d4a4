"""A client of the search service, with nothing but the standard library: copy this file anywhere, and it works.

    client = Client("http://127.0.0.1:8000", token="…")
    for match in client.search("cat.jpg", k=5)["matches"]:
        print(match["key"], match["distance"])

A connection is kept open between calls; use one client a thread.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, urlsplit


class ServiceError(Exception):
    """The service refused, or could not be reached; says why in one line."""

    def __init__(self, text: str, status: int | None = None, request_id: str | None = None) -> None:
        super().__init__(text)
        self.status, self.request_id = status, request_id


class Client:
    """The service at an address. Every call gives what the API answers, as dictionaries and lists."""

    def __init__(self, url: str = "http://127.0.0.1:8000", *, token: str | None = None, timeout: float = 60.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is no address of a service: give one such as http://127.0.0.1:8000")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._url, self._prefix = url, parts.path.rstrip("/")
        token = token or os.environ.get("ADSH_TOKEN")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def search(
        self,
        image: str | Path | bytes | None = None,
        *,
        key: str | None = None,
        code: str | bytes | None = None,
        k: int = 10,
        radius: int | None = None,
        filter: dict[str, Any] | None = None,
        ranking: str = "hamming",
        rerank: bool | None = None,
    ) -> dict[str, Any]:
        """What is nearest to a picture (a path, or a file's bytes), to the item of a key, or to a code."""
        if sum(given is not None for given in (image, key, code)) != 1:
            raise ValueError("give one of image, key and code")
        asked = {"k": k, "radius": radius, "filter": filter, "ranking": ranking, "rerank": rerank}
        asked = {name: value for name, value in asked.items() if value is not None}
        if image is not None:
            return self._form("POST", "/v1/search", image, asked)
        named = {"key": key} if key is not None else {"code": _hex(code)}
        return self._json("POST", "/v1/search", {**named, **asked})

    def encode(self, image: str | Path | bytes) -> dict[str, Any]:
        """The code of a picture."""
        return self._form("POST", "/v1/encode", image, {})

    def add(
        self,
        key: str,
        image: str | Path | bytes | None = None,
        *,
        code: str | bytes | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Stores an item by its picture or its code; it is on the server's disk when this returns."""
        if (image is None) == (code is None):
            raise ValueError("give one of image and code")
        if image is not None:
            return self._form("PUT", _item(key), image, {} if metadata is None else {"metadata": metadata})
        return self._json("PUT", _item(key), {"code": _hex(code), "metadata": metadata})

    def add_many(self, items: list[dict[str, Any]]) -> dict[str, Any]:
        """Stores items, each {"key", "code", "metadata"}, all of them or none."""
        return self._json("POST", "/v1/items", {"items": [{**one, "code": _hex(one["code"])} for one in items]})

    def get(self, key: str) -> dict[str, Any] | None:
        """The item of this key; None where there is none."""
        try:
            return self._json("GET", _item(key))
        except ServiceError as problem:
            if problem.status == 404:
                return None
            raise

    def image(self, key: str) -> bytes:
        """The file of an item's picture, where the service shows them."""
        return self._ask("GET", f"{_item(key)}/image")

    def remove(self, key: str) -> bool:
        """Takes an item out, and says whether it was there."""
        try:
            self._ask("DELETE", _item(key))
        except ServiceError as problem:
            if problem.status == 404:
                return False
            raise
        return True

    def info(self) -> dict[str, Any]:
        """What is served."""
        return self._json("GET", "/v1/info")

    def ready(self) -> bool:
        """Whether the service answers and can read its index."""
        try:
            self._ask("GET", "/readyz")
        except ServiceError:
            return False
        return True

    def close(self) -> None:
        """Ends the connection."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _json(self, method: str, path: str, values: dict[str, Any] | None = None) -> dict[str, Any]:
        body = None if values is None else json.dumps(values).encode()
        answer: dict[str, Any] = json.loads(self._ask(method, path, body, "application/json"))
        return answer

    def _form(self, method: str, path: str, image: str | Path | bytes, fields: dict[str, Any]) -> dict[str, Any]:
        data = image if isinstance(image, bytes) else Path(image).read_bytes()
        mark = secrets.token_hex(16)
        parts = [('name="image"; filename="image"', data)]
        for name, value in fields.items():
            parts.append((f'name="{name}"', (value if isinstance(value, str) else json.dumps(value)).encode()))
        body = b"".join(
            f"--{mark}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"
            for head, content in parts
        )
        kind = f"multipart/form-data; boundary={mark}"
        answer: dict[str, Any] = json.loads(self._ask(method, path, body + f"--{mark}--\r\n".encode(), kind))
        return answer

    def _ask(self, method: str, path: str, body: bytes | None = None, kind: str | None = None) -> bytes:
        headers = dict(self._headers) if kind is None or body is None else {**self._headers, "Content-Type": kind}
        fresh = self._connection.sock is None
        try:
            try:
                status, answer = self._once(method, path, body, headers)
            except (http.client.RemoteDisconnected, ConnectionError):
                self._connection.close()
                if fresh:
                    raise
                status, answer = self._once(method, path, body, headers)  # the server had closed an idle connection
        except (OSError, http.client.HTTPException) as problem:
            self._connection.close()
            reason = str(problem) or type(problem).__name__
            large = body is not None and len(body) > 1 << 20
            then = "is it running?" + " or is the request too large for it?" * large
            raise ServiceError(f"the service at {self._url} did not answer ({reason}): {then}") from None
        if status >= 400:
            raise _refusal(status, answer)
        return answer

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent: the answer says why
            self._connection.request(method, self._prefix + path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.read()


def _item(key: str) -> str:
    return f"/v1/items/{quote(key, safe='')}"


def _hex(code: str | bytes | None) -> str | None:
    return code.hex() if isinstance(code, bytes) else code


def _refusal(status: int, answer: bytes) -> ServiceError:
    try:
        told = json.loads(answer)
        return ServiceError(f"{told['detail']} (status {status})", status, told.get("request_id"))
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"the service answered with status {status}", status)
