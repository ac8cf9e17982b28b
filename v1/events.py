"""`/v1/sessions/{id}/events`: read the log, and send into the conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db.models import Q
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.scopes import require_scope
from accounts.models import TokenScope, User
from conversations.models import Conversation, Event
from harness.events import AgentToolUse
from programs.actions.sending import Decided, Input, send_events
from wire.ids import thread_id

from . import fieldnames
from .door import READ, WRITE, Door, body_of, operation
from .eventtypes import known
from .idempotency import HEADER, once
from .incoming import ConfirmationBody, SendEvents, refuse_unsupported, to_inputs
from .outgoing import OURS, STATUS, THREAD_STATUS, Thread, acted_on, echo, wire_events_of
from .paging import (
    ASC,
    DESC,
    Page,
    choice,
    describe,
    flag,
    page_of,
    paging,
    parameter,
    time_window,
    times,
    values,
    whole_number,
)
from .publictools import our_input
from .resources import session_of
from .threadevents import PUBLISHED, rows_for

MOST = 1000
X_EVENTS = "x_events"
"""`?x_events=true` or the header `x-agentsite-events: all`: our own events as well."""
X_HEADER = "x-agentsite-events"


class EventList(Page[dict[str, Any]]):
    """Events by their `type`; see docs/api.md for their fields."""


class SentEvents(BaseModel):
    data: list[dict[str, Any]]


OURS_TOO = (
    parameter(X_EVENTS, OpenApiTypes.BOOL, "Also this server's own events (x.…)."),
    parameter("after_seq", OpenApiTypes.INT, "Only events after this number."),
)


def wants_ours(request: Any) -> bool:
    return flag(request.GET, X_EVENTS) or request.headers.get(X_HEADER, "").lower() == "all"


class Events(Door):
    scopes = {"GET": READ, "POST": WRITE}

    @operation(
        "sessions_events_list",
        tag="events",
        response=EventList,
        query=(
            *paging(MOST),
            parameter("order", enum=[ASC, DESC]),
            parameter("types[]", many=True),
            *times("created_at"),
            *OURS_TOO,
        ),
        summary="List a session's events, oldest first",
    )
    def get(self, request: Request, uid: str) -> Response:
        return Response(events_page(session_of(self.caller, uid), request, self.caller.user))

    @operation(
        "sessions_events_send",
        tag="events",
        request=SendEvents,
        response=SentEvents,
        query=(OpenApiParameter(HEADER, OpenApiTypes.STR, OpenApiParameter.HEADER),),
        summary="Send events into a session; all are taken, or none",
    )
    def post(self, request: Request, uid: str) -> Response:
        conversation = session_of(self.caller, uid)
        refuse_unsupported(request)
        body = body_of(request, SendEvents)
        if any(isinstance(event, ConfirmationBody) for event in body.events):
            require_scope(self.caller, TokenScope.APPROVALS_DECIDE)
        return once(request, self.caller, lambda: self._send(conversation, body))

    def _send(self, conversation: Conversation, body: SendEvents) -> dict[str, Any]:
        inputs = to_inputs(body.events, self.caller, field="events")
        sent = send_events(
            actor=self.caller.user,
            conversation=conversation,
            events=[_in_our_words(conversation, value) for value in inputs],
            called=fieldnames.EVENTS,
        )
        echoes = []
        for each in sent:
            echoed = echo(each.uid, each.value, each.processed_at, each.seq)
            if each.thread_uid is not None:
                echoed["session_thread_id"] = thread_id(each.thread_uid)
            echoes.append(echoed)
        return {"data": echoes}


def _in_our_words(conversation: Conversation, value: Input) -> Input:
    """What a person changed a call's input into may speak of it as it was shown, in public words."""
    if not isinstance(value, Decided) or value.answer.edited_input is None:
        return value
    answer = value.answer
    calls = Event.objects.filter(conversation__owner=conversation.owner_id, uid=answer.tool_use_id)
    call = calls.filter(type="agent.tool_use").first()
    if call is None or not isinstance(call.value, AgentToolUse):
        return value
    edited = our_input(call.value.name, value.answer.edited_input)
    return replace(value, answer=answer.model_copy(update={"edited_input": edited}))


def events_page(conversation: Conversation, request: Any, reader: User) -> dict[str, Any]:
    """One page of a log, for the list of a session and for that of a thread, as `reader` may see it."""
    query = request.GET
    ours = wants_ours(request)
    rows = Event.objects.filter(
        conversation=conversation, **time_window(query, "created_at", "created_at")
    )
    thread = Thread.of(conversation)
    published = [] if thread is not None else list(PUBLISHED)
    if not ours:
        for beginning in OURS:
            rows = rows.exclude(Q(type__startswith=beginning) & ~Q(type__in=published))
        # What was switched is ours; of the public fields nothing changed. Older rows know no overrides.
        unchanged = Q(payload__overrides__isnull=True) | Q(payload__overrides={})
        rows = rows.exclude(unchanged, type="session.updated", payload__title=None)
    if types := values(query, "types", known(ours=ours)):
        if thread is not None:
            stored = [one.replace(THREAD_STATUS, STATUS, 1) for one in types if STATUS not in one]
            stored += ["user.message"] if "agent.thread_message_received" in types else []
        else:
            stored = rows_for(types)
        rows = rows.filter(type__in=stored)
    after = whole_number(query, "after_seq", 0, least=0, most=2**62)
    if after:
        rows = rows.filter(seq__gt=after)

    order = choice(query, "order", (ASC, DESC), ASC)

    def show(found: Sequence[Event]) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = []
        acts_on = acted_on(found, reader)
        for row in found:
            events = wire_events_of(row, ours=ours, thread=thread, reader=reader, acts=acts_on)
            events = [one for one in events if not types or one["type"] in types]
            told += events if order == ASC else reversed(events)
        return told

    about = describe(f"events of {conversation.uid}", query)
    return page_of(rows, query, about=about, show=show, most=MOST, key="seq", order=order)
