"""A client of the search service, with nothing but the standard library: copy this file anywhere, and it works.

    client = Client("http://127.0.0.1:8000", token="…")
    for match in client.search("cat.jpg", k=5)["matches"]:
        print(match["key"], match["distance"])

A connection is kept open between calls; use one client a thread. A request that the service is too busy for is sent
again when it says so. `AsyncClient` has the same methods, to be awaited.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import secrets
import select
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial, update_wrapper
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import quote, urlencode, urlsplit

P = ParamSpec("P")
T = TypeVar("T")
_Answer = tuple[int, bytes, float | None]  # status, body, and after how many seconds to ask again, if at all

_BUSY = (429, 503)  # refused before anything was done, where Retry-After says when to send it again
_LONGEST_WAIT = 30.0  # seconds


class ServiceError(Exception):
    """The service refused a request, or could not be reached; the message says why in one line.

    Args:
        text: The message.
        status: The HTTP status of the answer; None if the service could not be reached.
        request_id: The id of the request in the service's log, if it is known.
    """

    def __init__(self, text: str, status: int | None = None, request_id: str | None = None) -> None:
        super().__init__(text)
        self.status, self.request_id = status, request_id


class Client:
    """A connection to the service. Every call returns the API's answer as dictionaries and lists.

    Args:
        url: The address of the service.
        token: Its token; by default that of the environment variable ADSH_TOKEN, if there is one.
        timeout: Seconds to wait for an answer.
        retries: How often to send a request again that the service is too busy for, after the time it asks for.
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8000", *, token: str | None = None, timeout: float = 60.0, retries: int = 3
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            shown = url.rpartition("@")[2]  # without a password
            raise ValueError(f"{shown!r} is not the address of a service: give one such as http://127.0.0.1:8000")
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(parts.hostname, parts.port, timeout=timeout)
        self._url, self._prefix = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", parts.path.rstrip("/")
        self._retries = retries
        self._repeated = False  # whether the last request was sent twice
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
        """Search for the items nearest to an image, a stored item or a code; give one of the three.

        Args:
            image: An image file: its path or its bytes.
            key: The key of an item.
            code: A packed code, as bytes or hexadecimal digits.
            k: The number of matches, at most.
            radius: Only items within this Hamming distance.
            filter: Conditions on metadata, such as {"class": "cat"}.
            ranking: "hamming", or "asymmetric" for the network's real-valued outputs of an image.
            rerank: Whether ties are ordered by visual similarity; by default where that is possible.

        Returns:
            The API's answer, with the matches, nearest first.

        Raises:
            ServiceError: The service refused the search, or could not be reached.
        """
        if sum(query is not None for query in (image, key, code)) != 1:
            raise ValueError("give one of image, key and code")
        options = {"k": k, "radius": radius, "filter": filter, "ranking": ranking, "rerank": rerank}
        options = {name: value for name, value in options.items() if value is not None}
        if image is not None:
            return self._form("POST", "/v1/search", image, options)
        query = {"key": key} if key is not None else {"code": _hex(code)}
        return self._json("POST", "/v1/search", {**query, **options})

    def search_many(
        self, /, *, keys: Sequence[str] = (), codes: Sequence[str | bytes] = (), **options: Any
    ) -> list[dict[str, Any]]:
        """Search for the items nearest to several stored items or codes, in one request.

        Args:
            keys: The keys of items.
            codes: Packed codes, as bytes or hexadecimal digits.
            **options: k, radius, filter and rerank, as of `search`; include_self.

        Returns:
            The answer of each query: those of the keys, then those of the codes.
        """
        queries = [*({"key": key} for key in keys), *({"code": _hex(code)} for code in codes)]
        return list(self._json("POST", "/v1/search/batch", {"queries": queries, **options})["answers"])

    def items(self, filter: dict[str, Any] | None = None, *, page: int = 1000) -> Iterator[dict[str, Any]]:
        """Yield all items that meet conditions, page by page; each that stays is listed once."""
        cursor: str | None = ""
        while cursor is not None:
            found = self.page(filter, count=page, cursor=cursor)
            yield from found["items"]
            cursor = found["cursor"]

    def page(self, filter: dict[str, Any] | None = None, *, count: int = 100, cursor: str = "") -> dict[str, Any]:
        """Return some items, and under "cursor" where the next page starts; None there after the last one."""
        query = {"limit": str(count), "cursor": cursor, "filter": "" if filter is None else json.dumps(filter)}
        return self._json("GET", f"/v1/items?{urlencode({name: text for name, text in query.items() if text})}")

    def count(self, filter: dict[str, Any]) -> int:
        """Return how many items meet conditions."""
        return int(self._json("POST", "/v1/count", {"filter": filter})["items"])

    def remove_where(self, filter: dict[str, Any]) -> int:
        """Remove all items that meet conditions, and return how many there were."""
        return int(self._json("POST", "/v1/remove", {"filter": filter})["removed"])

    def update(self, key: str, metadata: dict[str, Any]) -> dict[str, Any]:
        """Set fields of an item's metadata, and remove those whose value is None; return the item."""
        return self._json("PATCH", _item_path(key), {"metadata": metadata})

    def encode(self, image: str | Path | bytes) -> dict[str, Any]:
        """Return the code of an image."""
        return self._form("POST", "/v1/encode", image, {})

    def add(
        self,
        key: str,
        image: str | Path | bytes | None = None,
        *,
        code: str | bytes | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Store an item by its image or its code; it is on the server's disk when this returns.

        Args:
            key: The item's key; an item of this key is replaced.
            image: An image file: its path or its bytes.
            code: A packed code, as bytes or hexadecimal digits.
            metadata: A JSON object to keep with the item.

        Returns:
            The API's answer.
        """
        if (image is None) == (code is None):
            raise ValueError("give one of image and code")
        if image is not None:
            return self._form("PUT", _item_path(key), image, {} if metadata is None else {"metadata": metadata})
        return self._json("PUT", _item_path(key), {"code": _hex(code), "metadata": metadata})

    def add_many(self, items: list[dict[str, Any]]) -> dict[str, Any]:
        """Store items, each {"key", "code", "metadata"}, all of them or none."""
        return self._json("POST", "/v1/items", {"items": [{**item, "code": _hex(item["code"])} for item in items]})

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the item of a key; None if there is none."""
        try:
            return self._json("GET", _item_path(key))
        except ServiceError as problem:
            if problem.status == 404:
                return None
            raise

    def image(self, key: str) -> bytes:
        """Return the bytes of an item's image file, if the service shows images."""
        return self._request("GET", f"{_item_path(key)}/image")

    def remove(self, key: str) -> bool:
        """Delete an item, and return whether it existed.

        Where the connection was lost before the answer, the request is repeated; an item that is absent then counts as
        deleted by the first.
        """
        try:
            self._request("DELETE", _item_path(key))
        except ServiceError as problem:
            if problem.status == 404:
                return self._repeated
            raise
        return True

    def info(self) -> dict[str, Any]:
        """Return facts of the model, the index and the service's limits."""
        return self._json("GET", "/v1/info")

    def ready(self) -> bool:
        """Whether the service answers and can read its index."""
        try:
            self._request("GET", "/readyz")
        except ServiceError:
            return False
        return True

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _json(self, method: str, path: str, values: dict[str, Any] | None = None) -> dict[str, Any]:
        body = None if values is None else json.dumps(values).encode()
        answer: dict[str, Any] = json.loads(self._request(method, path, body, "application/json"))
        return answer

    def _form(self, method: str, path: str, image: str | Path | bytes, fields: dict[str, Any]) -> dict[str, Any]:
        data = image if isinstance(image, bytes) else Path(image).read_bytes()
        boundary = secrets.token_hex(16)
        parts = [('name="image"; filename="image"', data)]
        for name, value in fields.items():
            parts.append((f'name="{name}"', (value if isinstance(value, str) else json.dumps(value)).encode()))
        body = b"".join(
            f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + content + b"\r\n"
            for head, content in parts
        )
        kind = f"multipart/form-data; boundary={boundary}"
        answer: dict[str, Any] = json.loads(self._request(method, path, body + f"--{boundary}--\r\n".encode(), kind))
        return answer

    def _request(self, method: str, path: str, body: bytes | None = None, kind: str | None = None) -> bytes:
        headers = dict(self._headers) if kind is None or body is None else {**self._headers, "Content-Type": kind}
        for attempt in range(self._retries + 1):
            status, answer, wait = self._exchange(method, path, body, headers)
            if wait is None or attempt == self._retries:
                break
            time.sleep(wait)
        if status >= 400:
            raise _refusal(status, answer)
        return answer

    def _exchange(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> _Answer:
        """Send a request, twice where the connection had been closed."""
        self._close_if_stale()
        fresh, self._repeated = self._connection.sock is None, False
        try:
            try:
                return self._send(method, path, body, headers)
            except (http.client.RemoteDisconnected, ConnectionError):
                self._connection.close()
                if fresh:
                    raise
                self._repeated = True
                return self._send(method, path, body, headers)  # the server may have closed it meanwhile
        except (OSError, http.client.HTTPException) as problem:
            self._connection.close()
            reason = str(problem) or type(problem).__name__
            large = body is not None and len(body) > 1 << 20
            hint = "is it running?" + " or is the request too large for it?" * large
            raise ServiceError(f"the service at {self._url} did not answer ({reason}): {hint}") from None

    def _close_if_stale(self) -> None:
        """Close a connection that the server has closed: a request on it would be lost, or seem to be."""
        sock = self._connection.sock
        if sock is not None and select.select([sock], [], [], 0)[0]:  # nothing but its end can come now
            self._connection.close()

    def _send(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes, float | None]:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all was sent: the answer says why
            self._connection.request(method, self._prefix + path, body, headers)
        response = self._connection.getresponse()
        wait = response.getheader("Retry-After", "") if response.status in _BUSY else ""
        return response.status, response.read(), min(float(wait), _LONGEST_WAIT) if wait.isdecimal() else None


def _awaited(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    """Return a method of `Client` as one to be awaited."""

    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(lambda client: method(client, *args, **kwargs))

    return update_wrapper(call, method)


class AsyncClient:
    """A client for asyncio: the methods of `Client`, to be awaited, over a few connections at once.

        async with AsyncClient("http://127.0.0.1:8000") as client:
            first, second = await asyncio.gather(client.search("cat.jpg"), client.search("dog.jpg"))

    Args:
        url: The address of the service.
        connections: How many requests may be under way; further ones wait.
        **options: token, timeout and retries, as of `Client`.
    """

    def __init__(self, url: str = "http://127.0.0.1:8000", *, connections: int = 8, **options: Any) -> None:
        self._clients: SimpleQueue[Client] = SimpleQueue()
        for _ in range(connections):
            self._clients.put(Client(url, **options))
        self._count = connections
        self._threads = ThreadPoolExecutor(connections, thread_name_prefix="adsh-client")

    search = _awaited(Client.search)
    search_many = _awaited(Client.search_many)
    encode = _awaited(Client.encode)
    add = _awaited(Client.add)
    add_many = _awaited(Client.add_many)
    get = _awaited(Client.get)
    page = _awaited(Client.page)
    count = _awaited(Client.count)
    image = _awaited(Client.image)
    update = _awaited(Client.update)
    remove = _awaited(Client.remove)
    remove_where = _awaited(Client.remove_where)
    info = _awaited(Client.info)
    ready = _awaited(Client.ready)

    async def items(self, filter: dict[str, Any] | None = None, *, page: int = 1000) -> AsyncIterator[dict[str, Any]]:
        """Yield all items that meet conditions."""
        cursor: str | None = ""
        while cursor is not None:
            found = await self.page(filter, count=page, cursor=cursor)
            for item in found["items"]:
                yield item
            cursor = found["cursor"]

    async def close(self) -> None:
        """Close the connections, once what is under way is done."""
        await asyncio.to_thread(self._threads.shutdown)
        for _ in range(self._count):
            self._clients.get_nowait().close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, call: Callable[[Client], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(self._with_client, call))

    def _with_client(self, call: Callable[[Client], T]) -> T:
        client = self._clients.get()
        try:
            return call(client)
        finally:
            self._clients.put(client)


def _item_path(key: str) -> str:
    return f"/v1/items/{quote(key, safe='')}"


def _hex(code: str | bytes | None) -> str | None:
    return code.hex() if isinstance(code, bytes) else code


def _refusal(status: int, answer: bytes) -> ServiceError:
    try:
        problem = json.loads(answer)
        return ServiceError(f"{problem['detail']} (status {status})", status, problem.get("request_id"))
    except (ValueError, KeyError, TypeError):
        return ServiceError(f"the service answered with status {status}", status)
