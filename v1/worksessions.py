"""What the secret of a work item opens: its session, to read; the calls handed out, to answer.

A worker sees calls where they were handed out to it, with the name and the input it is to use, and how
the session stands; what people and agent say to each other is not its business. A call that asks is
not there before somebody has allowed it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from asgiref.sync import sync_to_async
from django.db.models import Q
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, Field
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import presented_secret
from accounts.api.request_ids import current_request_id
from accounts.persons import whose_place
from conversations.actions.media import check_media
from conversations.models import Conversation, Event
from harness.content import as_blocks
from harness.errors import Forbidden, Invalid, NotFound, WorkLost
from harness.events import (
    AgentToolResult,
    CallHandedOut,
    RequiresAction,
    SessionStatusIdle,
    UserToolResult,
)
from harness.faults import place
from jobs.connections import give_back
from timelines.passing import of_handed_out
from wire.ids import session_uid
from wire.parameters import check_query
from workers import items as work
from workers.actions.items import give_tool_result, of_worker
from workers.models import WorkItem

from .coroutines import refused
from .door import ALWAYS, Body, Door, clean, data_of, parse, refuse_nul
from .events import MOST
from .incoming import MOST_EVENTS, Contents, blocks_of
from .outgoing import Wire, echo, timestamp, wire_event
from .paging import ASC, DESC, choice, describe, page_of, paging, parameter
from .problems import answer_to
from .snapshots import session_shape, with_all
from .stream import AT_ONCE, News, deleted, respond
from .workers import WorkDoor, worker_with

STATUSES = (
    "session.status_running",
    "session.status_idle",
    "session.status_rescheduled",
    "session.status_terminated",
)
RESULTS = ("user.tool_result", "agent.tool_result")


class ToolResultBody(Body):
    type: Literal["user.tool_result"]
    tool_use_id: str = Field(max_length=60)
    content: Contents | None = None
    is_error: bool | None = None
    session_thread_id: str | None = None


class Envelope(BaseModel):
    events: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_EVENTS)]


class _OfItem(WorkDoor):
    workers = {"GET": (WorkItem,), "POST": (WorkItem,)}

    def item(self, uid: str) -> WorkItem:
        holder = self.holder
        assert isinstance(holder, WorkItem)  # noqa: S101 - `workers` says so
        return of_session(holder, uid)


def of_session(item: WorkItem, uid: str) -> WorkItem:
    """The item, if it is of this session."""
    if item.conversation.uid != session_uid(uid):
        raise NotFound(_("There is no such session."))
    return item


def require_lease(item: WorkItem) -> None:
    if not work.holds(item):
        raise _lost()


def _lost() -> WorkLost:
    return WorkLost(
        _("This work item is not yours any more: its lease ran out, or it was ended."),
        hint=_("Ask for work again."),
    )


class ItemSession(_OfItem):
    @extend_schema(exclude=True)
    def get(self, request: Request, uid: str) -> Response:
        item = self.item(uid)
        require_lease(item)
        row = with_all(Conversation.objects.filter(pk=item.conversation_id)).get()
        return Response(_without_words(session_shape(row, row.owner)))


def _without_words(session: Wire) -> Wire:
    """What a worker needs to know of it: neither what people said, noted and lend there, nor what its agent
    is told and where its servers are."""
    agent = session["agent"]
    servers = [{**server, "url": ""} for server in agent["mcp_servers"]]
    untold = {"system": None, "mcp_servers": servers, "multiagent": None}
    nothing: Wire = {"title": None, "metadata": {}, "vault_ids": [], "outcome_evaluations": []}
    return {**session, **nothing, "agent": {**agent, **untold}}


class ItemEvents(_OfItem):
    @extend_schema(parameters=[*paging(MOST), parameter("order", enum=[ASC, DESC])])
    def get(self, request: Request, uid: str) -> Response:
        item = self.item(uid)
        require_lease(item)
        calls, end = _calls_and_end(item)
        rows = Event.objects.filter(conversation=item.conversation_id, seq__lte=end).filter(
            Q(type__in=(*STATUSES, "user.tool_result")) | Q(seq__in=list(calls.values()))
        )
        query = request.query_params
        order = choice(query, "order", (ASC, DESC), ASC)
        page = page_of(
            rows,
            query,
            about=describe(f"work {item.uid}", query),
            show=lambda found: seen_by_worker(found, calls),
            most=MOST,
            key="seq",
            order=order,
        )
        return Response(page)

    @extend_schema(exclude=True)
    def post(self, request: Request, uid: str) -> Response:
        item = self.item(uid)
        echoes = []
        for number, given in enumerate(parse(clean(data_of(request)), Envelope).events):
            if given.get("type") != "user.tool_result":
                raise Forbidden(
                    _("The secret of a work item only answers calls."),
                    hint=_("Send user.tool_result, or show an API token."),
                )
            row = _answered(item, given, number)
            echoes.append(echo(row.uid, row.value, row.processed_at, row.seq))
        return Response({"data": echoes})


def _calls_and_end(item: WorkItem) -> tuple[Mapping[str, int], int]:
    """The calls it is to carry out, and the number of the log's last event at that very moment. Beside
    events of another one, a rest that waits for a call would be told as an end."""
    ends = Conversation.objects.filter(pk=item.conversation_id).values_list("last_seq", flat=True)
    end = ends.first() or 0
    while True:
        calls = work.send_calls(item)
        if (now := ends.first() or 0) == end:
            return calls, end
        end = now


def _answered(item: WorkItem, given: Mapping[str, Any], number: int) -> Event:
    """The stored answer. One whose content cannot be taken is stored as an error that says so: the
    worker would not send another, and the turn would wait for ever."""
    call_uid = given.get("tool_use_id")
    try:
        body = parse(dict(given), ToolResultBody)
        blocks = blocks_of(body.content or ())
        check_media(blocks, who=of_worker(item))
    except Invalid as problem:
        if not isinstance(call_uid, str) or not problem.field.startswith("content"):
            raise problem.under(place("events", number)) from None
        words = f"The worker's answer could not be taken: {problem.field}: {problem.message}"
        return give_tool_result(
            item=item, call_uid=call_uid, content=as_blocks(words), is_error=True
        )
    return give_tool_result(
        item=item,
        call_uid=body.tool_use_id,
        content=blocks,
        is_error=bool(body.is_error),
    )


def seen_by_worker(rows: Sequence[Event], calls: Mapping[str, int]) -> list[Wire]:
    """Those of `rows` that its worker is to see. `calls` are those it is to carry out, with the
    number of the event that handed each out."""
    shown = (_seen(row, calls) for row in rows)
    return [event for event in shown if event is not None]


def _seen(row: Event, calls: Mapping[str, int]) -> Wire | None:
    value = row.value
    common = {"processed_at": timestamp(row.processed_at or row.created_at), "x_seq": row.seq}
    match value:
        case CallHandedOut() if value.carrier:
            return None
        case CallHandedOut():
            if calls.get(value.tool_use_id) != row.seq:
                return None
            return {
                "type": "agent.tool_use",
                "id": value.tool_use_id,
                "name": value.name,
                "input": value.input,
                # Whoever had to be asked has been: it is not handed out before.
                "evaluated_permission": "allow",
                "evaluation": {"type": "always_allow"},
                "session_thread_id": None,
                **common,
                **({"x_traceparent": trace} if (trace := of_handed_out(row)) else {}),
            }
        case UserToolResult() | AgentToolResult():
            # However a call ended, to its worker it is answered; the words are for the agent.
            return {
                "type": "user.tool_result",
                "id": row.uid,
                "tool_use_id": value.tool_use_id,
                "content": [],
                "is_error": value.is_error,
                "session_thread_id": None,
                **common,
            }
        case SessionStatusIdle():
            return _idle(row, value, calls)
        case _:
            return wire_event(row) if row.type in STATUSES else None


def _idle(row: Event, value: SessionStatusIdle, calls: Mapping[str, int]) -> Wire | None:
    """Resting for people only is an end of the turn to a worker: it need not stay for it. Why else it rests
    is told to people."""
    shown = wire_event(row)
    if shown is None:
        return None
    shown["stop_details"] = None
    shown.pop("x_stop_details", None)
    if isinstance(value.stop_reason, RequiresAction):
        awaited = [call for call in value.stop_reason.event_ids if call in calls]
        reason: Wire = {"type": "requires_action", "event_ids": awaited}
        shown["stop_reason"] = reason if awaited else {"type": "end_turn"}
    return shown


# --- following ------------------------------------------------------------------------------------


class _Followed(Door):
    """What `follow` takes: nothing that would choose among the events."""

    @extend_schema(exclude=True)
    def get(self, request: Request, uid: str) -> None:
        """Never reached."""


async def follow(request: HttpRequest, uid: str) -> HttpResponseBase:
    """What a worker's session tells it, as it comes."""
    try:
        if request.method != "GET":
            raise MethodNotAllowed(str(request.method))
        item, after, place = await sync_to_async(_admit)(request, uid)
    except Exception as error:
        return refused(error)

    def read(seq: int) -> News:
        return _news(item, seq)

    answer = respond(item.conversation.uid, read, after=after, previews=frozenset(), who=place)
    answer["request-id"] = current_request_id()
    return answer


def _admit(request: HttpRequest, uid: str) -> tuple[WorkItem, int, int]:
    """The item, the last event of its log, and whose share of the threads it takes."""
    try:
        refuse_nul(request)
        worker = worker_with(presented_secret(request.headers))
        if not isinstance(worker, WorkItem):
            raise Forbidden(
                _("This key may not be used for this."),
                hint=_("Show the secret of the work item."),
            )
        check_query(_Followed, "GET", request.GET, ALWAYS)
        item = of_session(worker, uid)
        require_lease(item)
        conversation = item.conversation
        return item, conversation.last_seq, whose_place(conversation.owner)
    finally:
        give_back()


def _news(item: WorkItem, after: int) -> News:
    if not Conversation.objects.filter(pk=item.conversation_id).exists():
        return News((), after, over={**deleted(), "processed_at": timestamp(timezone.now())})
    rows = list(Event.objects.filter(conversation=item.conversation_id).after(after)[:AT_ONCE])
    kinds = {row.type for row in rows}
    calls: Mapping[str, int] = {}
    if kinds & {"x.call_handed_out", "session.status_idle"}:
        calls = work.send_calls(item)
    if not work.holds(item):  # asked last, so that nothing of a time without the lease is told
        _status, error, _headers = answer_to(_lost())
        return News((), after, over=error)
    seq = rows[-1].seq if rows else after
    return News(seen_by_worker(rows, calls), seq, more=len(rows) == AT_ONCE)
