"""`/v1/memory_stores`: a person's memory stores and those she shares. What is in them is `memories`'."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from agents.models import Agent
from harness.errors import Invalid, NotFound
from memory.access import Author
from memory.actions import stores as actions
from memory.models import AuthorKind, MemoryStore

from .door import READ, WRITE, Body, Door, Shape, body_of, operation
from .metadata import Metadata, MetadataPatch
from .paging import Page, describe, flag, page_of, paging, parameter, time_window, times

Scope = Literal["person", "agent", "organization"]


class MemoryStoreCreate(Body):
    name: str
    description: str = ""
    metadata: Metadata = {}
    x_scope: Scope = "person"
    """Whose it is: the caller's own, an agent's, or the whole organisation's."""
    x_agent_id: str | None = None


class MemoryStoreUpdate(Body):
    name: str | None = None
    description: str | None = None
    metadata: MetadataPatch | None = None


class MemoryStoreShape(Shape):
    type: Literal["memory_store"] = "memory_store"
    id: str
    name: str
    description: str
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    x_scope: Scope
    x_agent_id: str | None


class MemoryStoreDeleted(Shape):
    type: Literal["memory_store_deleted"] = "memory_store_deleted"
    id: str


class MemoryStorePage(Page[MemoryStoreShape]):
    pass


def store_shape(row: MemoryStore) -> dict[str, Any]:
    return MemoryStoreShape(
        id=row.uid,
        name=row.name,
        description=row.description,
        metadata=row.metadata,
        created_at=row.created_at,
        updated_at=row.updated_at,
        archived_at=row.archived_at,
        x_scope=row.scope,
        x_agent_id=row.agent.uid if row.agent else None,
    ).wire()


def _shapes(rows: Sequence[MemoryStore]) -> list[dict[str, Any]]:
    return [store_shape(row) for row in rows]


def visible_stores(caller: Caller) -> Any:
    rows = MemoryStore.objects.visible_to(caller.user).filter(organisation=caller.organisation)
    return rows.select_related("organisation", "agent")


def find_store(caller: Caller, uid: str) -> MemoryStore:
    found: MemoryStore | None = visible_stores(caller).filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such memory store."))
    return found


def author(caller: Caller) -> Author:
    """Whom versions name: the service account, or the token by which a person acts."""
    if caller.user.is_service:
        return Author(AuthorKind.SERVICE, caller.user.uid)
    return Author(AuthorKind.API, caller.token.uid)


class MemoryStores(Door):
    scopes = {"GET": READ, "POST": WRITE}

    @operation(
        "memory_stores_list",
        tag="memory stores",
        response=MemoryStorePage,
        query=(
            *paging(),
            parameter("include_archived", OpenApiTypes.BOOL),
            *times("created_at"),
        ),
        summary="List memory stores, newest first",
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = visible_stores(self.caller).filter(**time_window(query, "created_at", "created_at"))
        if not flag(query, "include_archived"):
            rows = rows.in_force()
        about = describe("memory stores", query)
        return Response(page_of(rows, query, about=about, show=_shapes))

    @operation(
        "memory_stores_create",
        tag="memory stores",
        request=MemoryStoreCreate,
        response=MemoryStoreShape,
        summary="Create a memory store",
    )
    def post(self, request: Request) -> Response:
        body = body_of(request, MemoryStoreCreate)
        agent = None
        if body.x_agent_id is not None:
            agents = Agent.objects.visible_to(self.caller.user)
            agent = agents.filter(uid=body.x_agent_id).first()
            if agent is None:
                raise Invalid(
                    _("There is no such agent."), field="x_agent_id", hint=_("Check the id.")
                )
        if body.x_scope == "agent" and agent is None:
            raise Invalid(
                _("It is not said whose it is."), field="x_scope", hint=_("Give x_agent_id.")
            )
        row = actions.create_store(
            actor=self.caller.user,
            organisation=self.caller.organisation,
            name=body.name,
            description=body.description,
            metadata=body.metadata,
            scope=body.x_scope,
            agent=agent,
        )
        return Response(store_shape(row))


class OneMemoryStore(Door):
    scopes = {"GET": READ, "POST": WRITE, "DELETE": WRITE}

    @operation(
        "memory_stores_retrieve",
        tag="memory stores",
        response=MemoryStoreShape,
        summary="Read about a memory store",
    )
    def get(self, request: Request, uid: str) -> Response:
        return Response(store_shape(find_store(self.caller, uid)))

    @operation(
        "memory_stores_update",
        tag="memory stores",
        request=MemoryStoreUpdate,
        response=MemoryStoreShape,
        summary="Change what a memory store is called and said to hold",
    )
    def post(self, request: Request, uid: str) -> Response:
        row = find_store(self.caller, uid)
        body = body_of(request, MemoryStoreUpdate)
        row = actions.change_store(
            actor=self.caller.user,
            store=row,
            name=body.name,
            description=body.description,
            metadata=body.metadata,
        )
        return Response(store_shape(row))

    @operation(
        "memory_stores_delete",
        tag="memory stores",
        response=MemoryStoreDeleted,
        summary="Delete a memory store with all memories and versions",
    )
    def delete(self, request: Request, uid: str) -> Response:
        actions.delete_store(actor=self.caller.user, store=find_store(self.caller, uid))
        return Response(MemoryStoreDeleted(id=uid).wire())


class ArchiveMemoryStore(Door):
    scopes = {"POST": WRITE}

    @operation(
        "memory_stores_archive",
        tag="memory stores",
        response=MemoryStoreShape,
        summary="Archive a memory store: it is read and written to no more",
    )
    def post(self, request: Request, uid: str) -> Response:
        row = actions.archive_store(actor=self.caller.user, store=find_store(self.caller, uid))
        return Response(store_shape(row))
