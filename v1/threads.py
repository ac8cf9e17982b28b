"""`/v1/sessions/{id}/threads`: a session's own thread and the conversations its agent started."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from conversations.actions.conversations import archive_conversation
from conversations.models import Conversation
from harness.errors import Invalid
from programs.actions.sessions import require_at_rest
from subagents.casting import kind_of
from subagents.kinds import ADVISOR
from wire.ids import thread_id

from . import modelnames
from .agents import Identity, ModelShape, ThreadAgent
from .door import READ, WRITE, Door, Shape, operation
from .events import MOST, OURS_TOO, EventList, events_page
from .paging import ASC, DESC, Page, describe, page_of, paging, parameter, times, values
from .resources import session_of
from .sessions import STATUSES, having
from .snapshots import (
    Figures,
    Stats,
    UsageShape,
    agent_of,
    figures_of,
    status_of,
    usage_of,
    with_all,
)
from .streams import thread_of


class InlineAgent(Shape):
    """One that a call defined."""

    type: Literal["inline"] = "inline"
    name: str
    description: str | None
    model: ModelShape
    system: str | None
    tools: list[dict[str, Any]]
    mcp_servers: list[dict[str, Any]] = []
    skills: list[dict[str, Any]] = []
    execution_identity: Identity = Identity()


class AdvisorAgent(Shape):
    type: Literal["advisor"] = "advisor"
    model: str


class ThreadShape(Shape):
    type: Literal["session_thread"] = "session_thread"
    id: str
    session_id: str
    parent_thread_id: str | None
    agent: ThreadAgent | InlineAgent | AdvisorAgent
    status: Literal["running", "idle", "rescheduling", "terminated"]
    stats: Stats
    usage: UsageShape
    workflow_run_id: None = None
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


class ThreadList(Page[ThreadShape]):
    pass


def threads_of(session: Conversation) -> QuerySet[Conversation]:
    """The session itself and what it started, at whatever depth. In the order of their keys the
    session is first: nothing starts before what starts it."""
    found = generation = [session.pk]
    while generation:
        below = Conversation.objects.filter(parent__in=generation)
        generation = list(below.order_by().values_list("pk", flat=True))
        found = [*found, *generation]
    return with_all(Conversation.objects.filter(pk__in=found))


def thread_shapes(
    session: Conversation, rows: Sequence[Conversation], reader: User
) -> list[dict[str, Any]]:
    """As `reader` may see them."""
    figures = figures_of(rows)
    return [_shape(session, row, figures, reader) for row in rows]


def _shape(
    session: Conversation, row: Conversation, figures: Figures, reader: User
) -> dict[str, Any]:
    parent = row.parent if row.pk != session.pk else None
    return ThreadShape(
        id=thread_id(row.uid),
        session_id=session.uid,
        parent_thread_id=thread_id(parent.uid) if parent else None,
        agent=_agent(row, figures, reader),
        status=status_of(row, figures),
        stats=Stats(
            active_seconds=figures.active.get(row.pk, 0.0),
            duration_seconds=max(0.0, (row.active_at - row.created_at).total_seconds()),
        ),
        usage=usage_of(row, figures),
        created_at=row.created_at,
        updated_at=row.active_at,
        archived_at=row.archived_at,
    ).wire()


def _agent(
    row: Conversation, figures: Figures, reader: User
) -> ThreadAgent | InlineAgent | AdvisorAgent:
    asked = figures.called.get(row.pk)
    if asked is not None and kind_of(asked) is ADVISOR:
        return AdvisorAgent(model=modelnames.to_wire(row.config.provider, row.config.model))
    fields = agent_of(row, reader)
    if asked is not None and asked.inline:
        bare = {name: fields[name] for name in InlineAgent.model_fields if name in fields}
        return InlineAgent.model_validate(
            {**bare, "type": "inline", "name": asked.kind, "description": None}
        )
    return ThreadAgent.model_validate(fields)


class Threads(Door):
    scopes = {"GET": READ}

    @operation(
        "sessions_threads_list",
        tag="threads",
        response=ThreadList,
        query=(
            *paging(MOST, MOST),
            parameter("statuses[]", many=True, enum=list(STATUSES)),
        ),
        summary="List a session's threads, its own first",
    )
    def get(self, request: Request, uid: str) -> Response:
        session = session_of(self.caller, uid)
        query = request.query_params
        rows = threads_of(session)
        if statuses := values(query, "statuses", STATUSES):
            rows = rows.filter(having(statuses))
        about = describe(f"threads of {session.uid}", query)

        def show(found: Sequence[Conversation]) -> list[dict[str, Any]]:
            return thread_shapes(session, found, self.caller.user)

        return Response(
            page_of(rows, query, about=about, show=show, most=MOST, usual=MOST, order=ASC)
        )


class OneThread(Door):
    scopes = {"GET": READ}

    @operation(
        "sessions_threads_retrieve", tag="threads", response=ThreadShape, summary="Read a thread"
    )
    def get(self, request: Request, uid: str, thread: str) -> Response:
        session = session_of(self.caller, uid)
        return Response(_one(session, thread_of(session, thread), self.caller.user))


class ArchiveThread(Door):
    scopes = {"POST": WRITE}

    @operation(
        "sessions_threads_archive",
        tag="threads",
        response=ThreadShape,
        summary="Archive a thread that is at rest",
    )
    def post(self, request: Request, uid: str, thread: str) -> Response:
        session = session_of(self.caller, uid)
        row = thread_of(session, thread)
        if row.pk == session.pk:
            raise Invalid(
                _("A session's first thread is the session itself and cannot be archived alone."),
                field="thread_id",
                hint=_("Archive the session: POST /v1/sessions/{id}/archive."),
            )
        require_at_rest(row)
        archive_conversation(actor=self.caller.user, conversation=row, archived=True)
        return Response(_one(session, row, self.caller.user))


class ThreadEvents(Door):
    scopes = {"GET": READ}

    @operation(
        "sessions_threads_events_list",
        tag="threads",
        response=EventList,
        query=(
            *paging(MOST),
            parameter("order", enum=[ASC, DESC]),
            parameter("types[]", OpenApiTypes.STR, many=True),
            *times("created_at"),
            *OURS_TOO,
        ),
        summary="List a thread's events, oldest first",
    )
    def get(self, request: Request, uid: str, thread: str) -> Response:
        session = session_of(self.caller, uid)
        return Response(events_page(thread_of(session, thread), request, self.caller.user))


def _one(session: Conversation, row: Conversation, reader: User) -> dict[str, Any]:
    rows = list(with_all(Conversation.objects.filter(pk=row.pk)))
    return thread_shapes(session, rows, reader)[0]
