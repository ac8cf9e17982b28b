"""`/v1/memory_stores/{id}/memory_versions`: who changed what in a store, and what is taken out of that."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from harness.errors import NotFound
from memory.actions.memories import redact_version
from memory.models import AuthorKind, MemoryVersion
from wire.ids import session_uid

from .door import READ, WRITE, Door, Shape, operation
from .memories import MOST_FULL, VIEW, wants_full
from .memorystores import author, find_store
from .paging import Page, choice, describe, page_of, paging, parameter, time_window, times


class SessionActor(Shape):
    type: Literal["session_actor"] = "session_actor"
    session_id: str


class ApiActor(Shape):
    type: Literal["api_actor"] = "api_actor"
    api_key_id: str


class UserActor(Shape):
    type: Literal["user_actor"] = "user_actor"
    user_id: str


class ServiceAccountActor(Shape):
    type: Literal["service_account_actor"] = "service_account_actor"
    service_account_id: str


Actor = Annotated[
    SessionActor | ApiActor | UserActor | ServiceAccountActor, Field(discriminator="type")
]


class MemoryVersionShape(Shape):
    type: Literal["memory_version"] = "memory_version"
    id: str
    memory_id: str
    memory_store_id: str
    operation: Literal["created", "modified", "deleted"]
    path: str | None
    content: str | None
    content_sha256: str | None
    content_size_bytes: int | None
    created_by: Actor
    redacted_at: datetime | None
    redacted_by: Actor | None
    created_at: datetime


class MemoryVersionPage(Page[MemoryVersionShape]):
    pass


def actor_shape(kind: str, uid: str) -> Actor:
    match kind:
        case AuthorKind.SESSION:
            return SessionActor(session_id=uid)
        case AuthorKind.API:
            return ApiActor(api_key_id=uid)
        case AuthorKind.SERVICE:
            return ServiceAccountActor(service_account_id=uid)
        case _:
            return UserActor(user_id=uid)


def version_shape(row: MemoryVersion, *, full: bool) -> dict[str, Any]:
    return MemoryVersionShape(
        id=row.uid,
        memory_id=row.memory_uid,
        memory_store_id=row.store.uid,
        operation=row.operation,
        path=row.path,
        content=row.content if full else None,
        content_sha256=row.sha256,
        content_size_bytes=row.size,
        created_by=actor_shape(row.author_kind, row.author_uid),
        redacted_at=row.redacted_at,
        redacted_by=actor_shape(row.redacted_kind, row.redacted_uid) if row.redacted_at else None,
        created_at=row.created_at,
    ).wire()


def _shapes(rows: Sequence[MemoryVersion], *, full: bool) -> list[dict[str, Any]]:
    return [version_shape(row, full=full) for row in rows]


def find_version(caller: Caller, store: str, uid: str) -> MemoryVersion:
    rows = MemoryVersion.objects.visible_to(caller.user).select_related(
        "store__organisation", "store__agent"
    )
    found = rows.filter(store__uid=store, store__organisation=caller.organisation, uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such version."))
    return found


class MemoryVersions(Door):
    scopes = {"GET": READ}

    @operation(
        "memory_versions_list",
        tag="memory stores",
        response=MemoryVersionPage,
        query=(
            *paging(),
            VIEW,
            parameter("memory_id"),
            parameter("operation", enum=MemoryVersion.Operation.values),
            parameter("session_id"),
            parameter("api_key_id"),
            parameter("service_account_id"),
            *times("created_at"),
        ),
        summary="List the versions of a store's memories, newest first",
    )
    def get(self, request: Request, uid: str) -> Response:
        store = find_store(self.caller, uid)
        query = request.query_params
        full = wants_full(query, "basic")
        rows = store.versions.select_related("store").filter(
            **time_window(query, "created_at", "created_at")
        )
        if memory := query.get("memory_id"):
            rows = rows.filter(memory_uid=memory)
        if operation := choice(query, "operation", MemoryVersion.Operation.values, ""):
            rows = rows.filter(operation=operation)
        for name, kind in (
            ("session_id", AuthorKind.SESSION),
            ("api_key_id", AuthorKind.API),
            ("service_account_id", AuthorKind.SERVICE),
        ):
            if given := query.get(name):
                given = session_uid(given) if kind == AuthorKind.SESSION else given
                rows = rows.filter(author_kind=kind, author_uid=given)
        about = describe(f"memory versions of {store.uid}", query)
        show = partial(_shapes, full=full)
        return Response(
            page_of(rows, query, about=about, show=show, at_once=MOST_FULL if full else None)
        )


class OneMemoryVersion(Door):
    scopes = {"GET": READ}

    @operation(
        "memory_versions_retrieve",
        tag="memory stores",
        response=MemoryVersionShape,
        query=(VIEW,),
        summary="Read a version of a memory",
    )
    def get(self, request: Request, uid: str, version: str) -> Response:
        row = find_version(self.caller, uid, version)
        return Response(version_shape(row, full=wants_full(request.query_params, "full")))


class RedactMemoryVersion(Door):
    scopes = {"POST": WRITE}

    @operation(
        "memory_versions_redact",
        tag="memory stores",
        response=MemoryVersionShape,
        summary="Take out for good what a version says; who wrote it when stays",
    )
    def post(self, request: Request, uid: str, version: str) -> Response:
        row = redact_version(
            actor=self.caller.user,
            version=find_version(self.caller, uid, version),
            author=author(self.caller),
        )
        return Response(version_shape(row, full=True))
