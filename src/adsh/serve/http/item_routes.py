"""Items of the index: read, stored, taken out, and shown."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import numpy as np
import orjson
from fastapi import APIRouter, Depends, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor

from .. import schemas
from ..engine.image_root import read_image
from ..engine.search import from_hex, shown
from ..engine.service import Service
from ..problems import Problem
from ..schemas import EXAMPLE_CODE, ItemRequest, ItemsRequest, checked
from .bodies import ERRORS, FORM, JSON, NOT_FOUND, described, json_field, kind_of, read_form

_IMAGE = b"/image"


class _Anything(StringConvertor):
    """A key, slashes and line breaks included."""

    regex = r"[\s\S]*"


register_url_convertor("anything", _Anything())


async def _check_path(request: Request) -> None:
    """Refuses a key that is no UTF-8: what is not would be the same sign for all, and one key for many."""
    try:
        unquote_to_bytes(request.scope.get("raw_path", b"")).decode()
    except UnicodeDecodeError:
        raise Problem(422, "the key in the address is no UTF-8: encode it as UTF-8, then by percent signs") from None


def routes(service: Service) -> APIRouter:
    """The routes of items. A slash inside a key may be sent as it is, or as %2F."""
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["items"], dependencies=[Depends(_check_path)])
    index = service.index

    async def item_answer(key: str) -> Response:
        item = await service.item(key)
        told = {"key": item.key, "code": item.code.hex(), "metadata": shown(item.metadata)}
        return Response(orjson.dumps(told), media_type=JSON)

    @router.post(
        "/items",
        response_model=schemas.StoredItems,
        openapi_extra=described(
            ItemsRequest,
            {
                "two": {
                    "items": [
                        {"key": "a.jpg", "code": EXAMPLE_CODE},
                        {"key": "b.jpg", "code": EXAMPLE_CODE},
                    ]
                }
            },
        ),
    )
    async def put_items(request: Request) -> Response:
        """Store several items by their codes, all of them or none. Durable when answered."""
        kind_of(request, JSON)
        given = checked(ItemsRequest, await request.body()).items
        if len(given) > service.limits.max_items:
            raise Problem(422, f"{len(given):,} items: send at most {service.limits.max_items:,} at a time")
        codes = np.frombuffer(b"".join(from_hex(item.code, index.bits) for item in given), dtype=np.uint8)
        new = await service.write(
            lambda: index.add(
                [item.key for item in given], codes.reshape(len(given), -1), [item.metadata for item in given]
            )
        )
        return Response(orjson.dumps({"new": new, "replaced": len(given) - new}), media_type=JSON)

    @router.get(
        "/items/{key:anything}/image",
        response_class=Response,
        responses={**NOT_FOUND, 200: {"content": {"image/*": {}}, "description": "The picture's file."}},
    )
    async def image(key: str, request: Request) -> Response:
        """The picture of an item, where the server was started with `--images` and it lies there."""
        if not request.scope.get("raw_path", _IMAGE).endswith(_IMAGE):  # a key that ends so, its slash sent as %2F
            return await item_answer(f"{key}/image")
        item = await service.item(key)
        root = service.images
        if root is None:
            raise Problem(404, "this service shows no pictures: start it with --images FOLDER")
        found = await service.read_slowly(lambda: read_image(root, item))
        if found is None:
            raise Problem(404, f"there is no picture of {key[:80]!r} in the folder of images")
        data, media_type = found
        return Response(data, media_type=media_type, headers={"Cache-Control": "private, max-age=300"})

    @router.get("/items/{key:anything}", response_model=schemas.Item, responses=NOT_FOUND)
    async def item(key: str) -> Response:
        """An item as it is stored."""
        return await item_answer(key)

    @router.put(
        "/items/{key:anything}",
        response_model=schemas.Stored,
        responses={201: {"model": schemas.Stored, "description": "The key is new."}},
        openapi_extra=described(
            ItemRequest,
            {"by code": {"code": EXAMPLE_CODE, "metadata": {"class": "cat"}}},
            {"metadata": {"type": "string", "description": 'JSON, such as {"class": "cat"}.'}},
            {"metadata": '{"class": "cat"}'},
        ),
    )
    async def put_item(key: str, request: Request) -> Response:
        """Store an item by its code, or by its picture, which the network codes. Durable when answered."""
        if kind_of(request, JSON, FORM) == JSON:
            given, seen = checked(ItemRequest, await request.body()), None
        else:
            form = await read_form(request)
            metadata = json_field(form, "metadata")
            if form.fields:
                raise Problem(422, f"{next(iter(form.fields))[:40]} is not known here: send image and metadata")
            seen = await service.pictures(form.image)
            given = schemas.checked_fields(ItemRequest, {"code": seen.code.hex(), "metadata": metadata})
        code = from_hex(given.code, index.bits)
        new = await service.put(key, code, given.metadata, seen)
        told = {"key": key, "code": code.hex(), "new": new}
        return Response(orjson.dumps(told), status_code=201 if new else 200, media_type=JSON)

    @router.delete("/items/{key:anything}", status_code=204, response_class=Response, responses=NOT_FOUND)
    async def remove_item(key: str) -> Response:
        """Take an item out. Durable when answered."""
        if not await service.write(lambda: index.remove([key])):
            raise Problem(404, f"there is no item with the key {key[:80]!r}: nothing was taken out")
        return Response(status_code=204)

    return router
