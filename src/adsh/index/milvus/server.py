"""A Milvus server: its collections created and checked, and its errors in plain words.

    NAME          one entity per item: id (a hash of the key), key, place (the order of insertion), code, metadata (JSON
                  as text), fields (what filters look for)
    NAME_facts    the header, and notes

Entities are identified by a hash of the key, so that any text can be a key without quoting.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from grpc import Call, RpcError
from pymilvus import DataType, MilvusClient
from pymilvus.client.types import Status
from pymilvus.exceptions import MilvusException

from ...errors import FolderError, InputError, ServerError, first_line
from ...hamming.bits import bytes_for
from ...utils.urls import check_address, check_name, options_of, secrets_of, shown, without_secrets
from ..validation import LONGEST_KEY

INDEXES = ("BIN_FLAT", "BIN_IVF_FLAT")
_REFUSED = re.compile(r"unauthenticated|auth check|authenticat|username|password|api key", re.IGNORECASE)
KEYS = 4096  # per request
LONGEST_TEXT = 65535  # bytes of a VARCHAR
_DIGEST = 16  # bytes: enough that no two keys share a hash
_OPTIONS = ("collection", "index", "nlist", "token")

logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # every failure is raised; the log would repeat it


class Milvus:
    """The collections of one index."""

    def __init__(self, address: str, timeout: float) -> None:
        self.name = shown(address)
        self.timeout = timeout
        self._secrets = secrets_of(address)
        bare, options = options_of(check_address(address), _OPTIONS)
        self.items = check_name("collection", options.get("collection", "adsh"))
        self.facts = f"{self.items}_facts"
        self._index = options.get("index", INDEXES[0])
        self._named = "index" in options
        if self._index not in INDEXES:
            raise InputError(f"index={self._index}: choose {' or '.join(INDEXES)}")
        self._lists = options.get("nlist", "128")
        if not self._lists.isdigit() or not 1 <= int(self._lists) <= 65536:
            raise InputError(f"nlist={self._lists}: give a whole number from 1 to 65536")
        try:
            parts = urlsplit(bare.removeprefix("milvus+"))
            host, _ = parts.hostname, parts.port  # reading a port checks it
        except ValueError as problem:
            raise InputError(f"{self.name} is no address ({problem}): give milvus+http://HOST:19530") from None
        if not host:
            raise InputError(f"{self.name} names no host: give milvus+http://HOST:19530")
        if parts.query:
            unknown = parts.query.partition("=")[0]
            raise InputError(f"{self.name} has an option {unknown}: choose among {', '.join(_OPTIONS)}")
        self._closed = False
        with self.translated_errors():
            self._client = _connect(
                uri=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}",
                user=unquote(parts.username or ""),
                password=unquote(parts.password or ""),
                db_name=parts.path.strip("/"),
                token=options.get("token", ""),
                timeout=timeout,
            )

    @property
    def client(self) -> MilvusClient:
        """The connection; raises if this handle is closed."""
        if self._closed:
            raise InputError(f"this handle of {self.name} is closed: open the index again")
        return self._client

    def close(self) -> None:
        """Close the connection; a second time does nothing."""
        if not self._closed:
            self._closed = True
            self._client.close()

    def create(self, collection: str, bits: int) -> None:
        """Create one of the two collections if it is missing."""
        if self.client.has_collection(collection):
            return
        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=2 * _DIGEST)
        schema.add_field("code", DataType.BINARY_VECTOR, dim=8 * bytes_for(bits if collection == self.items else 1))
        if collection == self.items:
            schema.add_field("key", DataType.VARCHAR, max_length=LONGEST_KEY)
            schema.add_field("place", DataType.INT64)
            schema.add_field("metadata", DataType.VARCHAR, max_length=LONGEST_TEXT)
            schema.add_field("fields", DataType.JSON)
        else:
            schema.add_field("value", DataType.VARCHAR, max_length=LONGEST_TEXT)
        kind = self._index if collection == self.items else INDEXES[0]
        index = self.client.prepare_index_params()
        lists = {"nlist": int(self._lists)} if kind == "BIN_IVF_FLAT" else {}
        index.add_index("code", index_type=kind, metric_type="HAMMING", params=lists)
        try:
            self.client.create_collection(collection, schema=schema, index_params=index, consistency_level="Strong")
        except MilvusException:
            self.client.drop_collection(collection)  # one without its index would be taken for complete later
            raise

    def check(self, bits: int | None, *collections: str) -> None:
        """Raise if one of these collections is not as `create` creates it; None accepts any bits."""
        required = {
            self.items: {"id", "code", "key", "place", "metadata", "fields"},
            self.facts: {"id", "code", "value"},
        }
        for collection in collections:
            names = required[collection]
            fields = self.client.describe_collection(collection)["fields"]
            widths = [field["params"].get("dim") for field in fields if field["name"] == "code"]
            right = bits is None or collection != self.items or widths == [8 * bytes_for(bits)]
            if {field["name"] for field in fields} != names or not right:
                raise FolderError(
                    f"the collection {collection} of {self.name} was not created by adsh: name another with "
                    "?collection=NAME"
                )

    def search_options(self) -> dict[str, int]:
        """Return the options of an exact search: all lists are read if the index has lists."""
        description = self.client.describe_index(self.items, "code") or {}
        kind = description.get("index_type")
        if self._named and kind != self._index:
            raise InputError(
                f"index={self._index}, but {self.name} was created with {kind}: leave index out, or name another "
                "collection"
            )
        return {"nprobe": int(description.get("nlist", self._lists))} if kind == "BIN_IVF_FLAT" else {}

    def entities(self, ids: list[str], fields: list[str]) -> list[dict[str, Any]]:
        """Return these fields of the items with these ids, without those that do not exist."""
        found: list[dict[str, Any]] = []
        with self.translated_errors():
            for start in range(0, len(ids), KEYS):
                found += self.client.get(
                    self.items,
                    ids=ids[start : start + KEYS],
                    output_fields=fields,
                    consistency_level="Strong",
                    timeout=self.timeout,
                )
        return found

    def fact(self, name: str) -> str | None:
        """Return the text stored under this name; None if there is none."""
        with self.translated_errors():
            found = self.client.get(
                self.facts,
                ids=[identity(name)],
                output_fields=["value"],
                consistency_level="Strong",
                timeout=self.timeout,
            )
        return str(found[0]["value"]) if len(found) else None

    def set_fact(self, name: str, value: str) -> None:
        """Store a text under this name."""
        with self.translated_errors():
            entity = {"id": identity(name), "code": b"\0", "value": value}
            self.client.upsert(self.facts, [entity], timeout=self.timeout)

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Turn Milvus' errors into this package's, without passwords and tokens."""
        try:
            yield
        except MilvusException as problem:
            reason = without_secrets(" ".join(first_line(Exception(problem.message)).split()), self._secrets)
            if _REFUSED.search(reason):  # first: such a message may mention the connection too
                raise ServerError(f"{self.name} refuses the user ({reason}): check user, password or token") from None
            if "connect" in reason.lower() or "unavailable" in reason.lower():
                raise ServerError(
                    f"no Milvus server answers at {self.name} ({reason}): start it, or correct the address; a call "
                    "that was under way can be repeated"
                ) from None
            raise ServerError(f"{self.name} refused ({reason}): repeat the call, or see the server's log") from None
        except RpcError as problem:  # pymilvus lets some through
            reason = without_secrets(first_line(problem), self._secrets)
            code = problem.code().name if isinstance(problem, Call) else reason
            raise ServerError(
                f"{self.name} does not answer within {self.timeout:g} s ({code}): check the server; a call "
                "that was under way can be repeated"
            ) from None


def _connect(**options: Any) -> MilvusClient:
    """Connect, with retries: after a server was away, gRPC refuses for a while without contacting it."""
    for pause in (0.2, 0.4, 0.8, 1.6, 0.0):
        try:
            client = MilvusClient(**options)
            client.has_collection("adsh", timeout=options["timeout"])
            return client
        except MilvusException as problem:
            if problem.code != Status.CONNECT_FAILED or not pause:
                raise
            time.sleep(pause)
    raise AssertionError


def identity(key: str) -> str:
    """Return the id of a key."""
    return hashlib.blake2b(key.encode(), digest_size=_DIGEST).hexdigest()
