"""`/v1/memory_stores/{id}/memories`: texts at paths. Their history is `memoryversions`'."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import QueryDict
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from pydantic import Field, StringConstraints
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from harness.errors import Invalid, NotFound
from memory.actions import memories as actions
from memory.models import Memory, MemoryStore
from memory.paths import check_prefix

from .door import READ, WRITE, Body, Door, Shape, body_of, operation
from .memorystores import author, find_store
from .paging import MOST, USUAL, Page, choice, describe, paging, parameter, place_in, whole_number

MOST_FULL = 20
"""Items of a page that shows contents."""
VIEW = parameter("view", enum=["basic", "full"])
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class MemoryCreate(Body):
    path: str
    content: str | None


class Precondition(Body):
    type: Literal["content_sha256"]
    content_sha256: Sha256


class MemoryUpdate(Body):
    path: str | None = None
    content: str | None = None
    precondition: Precondition | None = None


class MemoryShape(Shape):
    type: Literal["memory"] = "memory"
    id: str
    memory_store_id: str
    memory_version_id: str
    path: str
    content: str | None
    content_sha256: str
    content_size_bytes: int
    created_at: datetime
    updated_at: datetime


class MemoryPrefix(Shape):
    type: Literal["memory_prefix"] = "memory_prefix"
    path: str


MemoryItem = Annotated[MemoryShape | MemoryPrefix, Field(discriminator="type")]


class MemoryDeleted(Shape):
    type: Literal["memory_deleted"] = "memory_deleted"
    id: str


class MemoryPage(Page[MemoryItem]):
    pass


def memory_shape(row: Memory, store: MemoryStore, *, full: bool) -> dict[str, Any]:
    return MemoryShape(
        id=row.uid,
        memory_store_id=store.uid,
        memory_version_id=row.version_uid,
        path=row.path,
        content=row.content if full else None,
        content_sha256=row.sha256,
        content_size_bytes=row.size,
        created_at=row.created_at,
        updated_at=row.updated_at,
    ).wire()


def wants_full(query: QueryDict, usual: str) -> bool:
    return choice(query, "view", ("basic", "full"), usual) == "full"


def find_memory(caller: Caller, store: str, uid: str) -> Memory:
    rows = Memory.objects.visible_to(caller.user).select_related(
        "store__organisation", "store__agent"
    )
    found = rows.filter(store__uid=store, store__organisation=caller.organisation, uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such memory."))
    return found


class Memories(Door):
    scopes = {"GET": READ, "POST": WRITE}

    @operation(
        "memories_list",
        tag="memory stores",
        response=MemoryPage,
        query=(
            *paging(),
            VIEW,
            parameter("path_prefix", text="A folder, with a slash at its end."),
            parameter("depth", OpenApiTypes.INT, "0: all below; 1: what is in the folder itself."),
        ),
        summary="List memories by path",
    )
    def get(self, request: Request, uid: str) -> Response:
        store = find_store(self.caller, uid)
        query = request.query_params
        full = wants_full(query, "basic")
        prefix = check_prefix(query.get("path_prefix", "/"))
        deep = whole_number(query, "depth", 0, least=0, most=1)
        limit = whole_number(query, "limit", USUAL, least=1, most=MOST)
        limit = min(limit, MOST_FULL) if full else limit
        about = describe(f"memories of {store.uid}", query)
        place, cursor = place_in(query, about=about)
        # In Python's order of texts, which databases do not share.
        paths = sorted(_items(store, prefix, rolled_up=deep == 1))
        shown = [path for path in paths if place is None or path > place][: limit + 1]
        more = len(shown) > limit
        shown = shown[:limit]
        rows = {row.path: row for row in store.memories.filter(path__in=shown)}
        return Response(
            {
                "data": [
                    memory_shape(rows[path], store, full=full)
                    if path in rows
                    else MemoryPrefix(path=path).wire()
                    for path in shown
                ],
                "next_page": cursor(shown[-1]) if more else None,
            }
        )

    @operation(
        "memories_create",
        tag="memory stores",
        request=MemoryCreate,
        response=MemoryShape,
        query=(VIEW,),
        summary="Write a new memory; never over another",
    )
    def post(self, request: Request, uid: str) -> Response:
        store = find_store(self.caller, uid)
        full = wants_full(request.query_params, "basic")
        body = body_of(request, MemoryCreate)
        row = actions.create_memory(
            actor=self.caller.user,
            store=store,
            path=body.path,
            content=body.content or "",
            author=author(self.caller),
        )
        return Response(memory_shape(row, store, full=full))


def _items(store: MemoryStore, prefix: str, *, rolled_up: bool) -> set[str]:
    """Paths below the folder; of those in further folders, rolled up, the folders."""
    paths: Sequence[str] = store.memories.values_list("path", flat=True)  # type: ignore[assignment]
    below = [path for path in paths if path.startswith(prefix)]
    if not rolled_up:
        return set(below)
    parts = [path[len(prefix) :].partition("/") for path in below]
    return {f"{prefix}{first}{slash}" for first, slash, _rest in parts}


class OneMemory(Door):
    scopes = {"GET": READ, "POST": WRITE, "DELETE": WRITE}

    @operation(
        "memories_retrieve",
        tag="memory stores",
        response=MemoryShape,
        query=(VIEW,),
        summary="Read a memory",
    )
    def get(self, request: Request, uid: str, memory: str) -> Response:
        row = find_memory(self.caller, uid, memory)
        full = wants_full(request.query_params, "full")
        return Response(memory_shape(row, row.store, full=full))

    @operation(
        "memories_update",
        tag="memory stores",
        request=MemoryUpdate,
        response=MemoryShape,
        query=(VIEW,),
        summary="Change a memory, or move it to another path",
    )
    def post(self, request: Request, uid: str, memory: str) -> Response:
        row = find_memory(self.caller, uid, memory)
        full = wants_full(request.query_params, "basic")
        body = body_of(request, MemoryUpdate)
        row = actions.change_memory(
            actor=self.caller.user,
            memory=row,
            path=body.path,
            content=body.content,
            expected_sha256=body.precondition.content_sha256 if body.precondition else None,
            author=author(self.caller),
        )
        return Response(memory_shape(row, row.store, full=full))

    @operation(
        "memories_delete",
        tag="memory stores",
        response=MemoryDeleted,
        query=(parameter("expected_content_sha256", text="64 hexadecimal digits."),),
        summary="Delete a memory; its versions stay",
    )
    def delete(self, request: Request, uid: str, memory: str) -> Response:
        row = find_memory(self.caller, uid, memory)
        expected = request.query_params.get("expected_content_sha256")
        if expected is not None and not _is_sha256(expected):
            raise Invalid(
                _("It is no SHA-256."),
                field="expected_content_sha256",
                hint=_("Send 64 hexadecimal digits in lower case."),
            )
        actions.delete_memory(
            actor=self.caller.user,
            memory=row,
            expected_sha256=expected,
            author=author(self.caller),
        )
        return Response(MemoryDeleted(id=memory).wire())


def _is_sha256(text: str) -> bool:
    return len(text) == 64 and all(sign in "0123456789abcdef" for sign in text)
