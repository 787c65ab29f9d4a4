"""Routes of items: read, show, store and delete them. A slash inside a key may be sent as it is, or as %2F."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np
import orjson
from fastapi import APIRouter, Depends, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor

from ...index import Item
from ..engine.answers import metadata_json
from ..engine.image_root import read_image
from ..engine.images import EncodedImage
from ..engine.problems import Problem
from ..engine.search_queue import parse_hex
from ..engine.service import Service
from . import schemas
from .bodies import ERRORS, FORM, JSON, NOT_FOUND, content_type, describe_body, json_field, read_form, read_json
from .item_batch import read_batch
from .schemas import EXAMPLE_CODE, ItemRequest, ItemsRequest, PatchRequest, parse_fields, parse_json

_IMAGE = b"/image"
_ITEM_PATH = "/items/{key:anything}"

_ITEMS_BODY = describe_body(
    ItemsRequest,
    {"two": {"items": [{"key": "a.jpg", "code": EXAMPLE_CODE}, {"key": "b.jpg", "code": EXAMPLE_CODE}]}},
)
_ITEM_BODY = describe_body(
    ItemRequest,
    {"by code": {"code": EXAMPLE_CODE, "metadata": {"class": "cat"}}},
    {"metadata": {"type": "string", "description": 'JSON, such as {"class": "cat"}.'}},
    {"metadata": '{"class": "cat"}'},
)


class _Anything(StringConvertor):
    """A key, slashes and line breaks included."""

    regex = r"[\s\S]*"


register_url_convertor("anything", _Anything())


async def _check_path(request: Request) -> None:
    """Refuse a key that is not UTF-8: its invalid bytes would all become one character, and many keys one key."""
    try:
        unquote_to_bytes(request.scope.get("raw_path", b"")).decode()
    except UnicodeDecodeError:
        raise Problem(422, "the key in the address is not UTF-8: encode it as UTF-8, then by percent signs") from None


def routes(service: Service) -> APIRouter:
    """Return the routes of items."""
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["items"], dependencies=[Depends(_check_path)])
    _add_batch_route(router, service)
    _add_patch_route(router, service)
    _add_read_routes(router, service)
    _add_write_routes(router, service)
    return router


def _add_batch_route(router: APIRouter, service: Service) -> None:
    index = service.index

    @router.post("/items", response_model=schemas.StoredItems, openapi_extra=_ITEMS_BODY)
    async def put_items(request: Request) -> Response:
        """Store several items by their codes, all of them or none. Durable when answered."""
        content_type(request, JSON)
        batch = await read_batch(service, request.receive)
        codes = np.frombuffer(batch.codes, dtype=np.uint8).reshape(len(batch.keys), -1)
        new = await service.write(lambda: index.add(batch.keys, codes, batch.metadata()))
        return Response(orjson.dumps({"new": new, "replaced": len(batch.keys) - new}), media_type=JSON)


def _add_read_routes(router: APIRouter, service: Service) -> None:
    @router.get(
        f"{_ITEM_PATH}/image",
        response_class=Response,
        responses={**NOT_FOUND, 200: {"content": {"image/*": {}}, "description": "The image file."}},
    )
    async def image(key: str, request: Request) -> Response:
        """Return the image of an item, if the server was started with `--images` and the file lies there."""
        if not request.scope.get("raw_path", _IMAGE).endswith(_IMAGE):  # a key that ends so, its slash sent as %2F
            return await _item_answer(service, f"{key}/image")
        return await _image_answer(service, key)

    @router.get(_ITEM_PATH, response_model=schemas.Item, responses=NOT_FOUND)
    async def item(key: str) -> Response:
        """Return an item as it is stored."""
        return await _item_answer(service, key)


def _add_write_routes(router: APIRouter, service: Service) -> None:
    @router.put(
        _ITEM_PATH,
        response_model=schemas.Stored,
        responses={201: {"model": schemas.Stored, "description": "The key is new."}},
        openapi_extra=_ITEM_BODY,
    )
    async def put_item(key: str, request: Request) -> Response:
        """Store an item by its code, or by its image, which the network encodes. Durable when answered."""
        item, image = await _read_item(service, request)
        code = parse_hex(item.code, service.index.bits)
        new = await service.store(key, code, item.metadata, image)
        answer = {"key": key, "code": code.hex(), "new": new}
        return Response(orjson.dumps(answer), status_code=201 if new else 200, media_type=JSON)

    @router.delete(_ITEM_PATH, status_code=204, response_class=Response, responses=NOT_FOUND)
    async def remove_item(key: str) -> Response:
        """Delete an item. Durable when answered."""
        if not await service.write(lambda: service.index.remove([key])):
            raise Problem(404, f"there is no item with the key {key[:80]!r}: nothing was deleted")
        return Response(status_code=204)


def _add_patch_route(router: APIRouter, service: Service) -> None:
    @router.patch(
        _ITEM_PATH,
        response_model=schemas.Item,
        responses=NOT_FOUND,
        openapi_extra=describe_body(PatchRequest, {"a class": {"metadata": {"class": "lynx", "seen": None}}}),
    )
    async def patch_item(key: str, request: Request) -> Response:
        """Set fields of an item's metadata; its code stays. Durable when answered."""
        content_type(request, JSON)
        patch = parse_json(PatchRequest, await read_json(request))
        return item_response(await service.patch(key, patch.metadata))


async def _item_answer(service: Service, key: str) -> Response:
    return item_response(await service.item(key))


def item_response(item: Item) -> Response:
    """Return an item as the answer of a request."""
    return Response(orjson.dumps(item_values(item)), media_type=JSON)


def item_values(item: Item) -> dict[str, Any]:
    """Return an item for an answer, without paths."""
    return {"key": item.key, "code": item.code.hex(), "metadata": metadata_json(item.metadata)}


async def _image_answer(service: Service, key: str) -> Response:
    item = await service.item(key)
    root = service.images
    if root is None:
        raise Problem(404, "this service shows no images: start it with --images FOLDER")
    found = await service.read_slowly(lambda: read_image(root, item))
    if found is None:
        raise Problem(404, f"there is no image of {key[:80]!r} in the folder of images")
    data, media_type = found
    return Response(data, media_type=media_type, headers={"Cache-Control": "private, max-age=300"})


async def _read_item(service: Service, request: Request) -> tuple[ItemRequest, EncodedImage | None]:
    """Return the item of a body, and for a form its encoded image."""
    if content_type(request, JSON, FORM) == JSON:
        return parse_json(ItemRequest, await read_json(request)), None
    form = await read_form(request)
    metadata = json_field(form, "metadata")
    if form.fields:
        raise Problem(422, f"{next(iter(form.fields))[:40]} is not known here: send image and metadata")
    image = await service.encode_image(form.image)
    return parse_fields(ItemRequest, {"code": image.code.hex(), "metadata": metadata}), image
