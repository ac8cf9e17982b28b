"""The addresses of streams: who may follow what, from where on. The following itself is `stream`'s.

What a view without DRF does about tokens and refusals is `coroutines`'.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import MethodNotAllowed

from accounts.api.authentication import caller_of_token
from accounts.api.request_ids import current_request_id
from accounts.persons import whose_place
from conversations.models import Conversation, Event
from harness.errors import Invalid, NotFound
from jobs.connections import give_back
from reading.digits import number_of
from wire.ids import conversation_uid
from wire.parameters import check_query

from .coroutines import caller_for, described_by, refused
from .door import ALWAYS, READ, Door, operation, refuse_nul
from .events import OURS_TOO, wants_ours
from .outgoing import Thread, timestamp, wire_events
from .paging import parameter, values, whole_number
from .problems import envelope
from .resources import session_of
from .stream import AT_ONCE, PREVIEWS, News, deleted, respond

DELTAS = "event_deltas"


class Following:
    """One client's right to follow one conversation, asked again at each read."""

    def __init__(self, request: HttpRequest, uid: str, thread: str | None = None) -> None:
        caller = caller_for(request, READ, writes=False)
        refuse_nul(request)
        described = SessionStream if thread is None else ThreadStream
        check_query(described, "GET", request.GET, ALWAYS)
        self.ours = wants_ours(request)
        self.previews = frozenset(values(request.GET, DELTAS, PREVIEWS))
        session = conversation = session_of(caller, uid)
        if thread is not None:
            conversation = thread_of(session, thread)
        self.token = caller.token.uid
        self.place = whose_place(caller.user)
        self.uid = conversation.uid
        self.session = session.pk
        self.pk = conversation.pk
        self.thread = Thread.of(conversation)
        self.after = _after(request, conversation)

    def read(self, after: int) -> News:
        caller = caller_of_token(self.token)
        if caller is None or not caller.token.has_scope(READ):
            error = envelope("authentication_error", _("This token is not valid any more."))
            return News((), after, over=error)
        # A thread is read by whoever may read its session, as in lists.
        seen = Conversation.objects.visible_to(caller.user).filter(pk=self.session)
        if not (seen.exists() and Conversation.objects.filter(pk=self.pk).exists()):
            return News((), after, over={**deleted(), "processed_at": timestamp(timezone.now())})
        rows = list(Event.objects.filter(conversation=self.pk).after(after)[:AT_ONCE])
        seq = rows[-1].seq if rows else after
        events = wire_events(rows, ours=self.ours, thread=self.thread, reader=caller.user)
        return News(events, seq, more=len(rows) == AT_ONCE)


def thread_of(session: Conversation, thread: str) -> Conversation:
    """A thread of the session: itself, or a conversation that it started, at whatever depth."""
    uid = conversation_uid(thread)
    if uid == session.uid:
        return session
    found = Conversation.objects.filter(uid=uid, owner=session.owner).first()
    each = found
    while each is not None and each.pk != session.pk:
        each = each.parent
    if found is None or each is None:
        raise NotFound(_("There is no such thread."))
    return found


def _after(request: HttpRequest, conversation: Conversation) -> int:
    """After which event: what the client says, else after what there is now."""
    most = 2**62
    given = request.GET.get("after_seq")
    if given is not None:
        return whole_number(request.GET, "after_seq", 0, least=0, most=most)
    last = request.headers.get("Last-Event-ID")
    if last:
        seq = number_of(last, most=most)
        if seq is None:
            raise Invalid(
                _("It is not the number of an event."),
                field="Last-Event-ID",
                hint=_("Give the id of the last frame that had one, or leave it out."),
            )
        return seq
    return conversation.last_seq


async def stream(request: HttpRequest, **parameters: str) -> HttpResponseBase:
    """Follow a session's or a thread's events."""
    try:
        if request.method != "GET":
            raise MethodNotAllowed(str(request.method))
        following = await sync_to_async(_admit)(request, parameters)
    except Exception as error:
        return refused(error)
    answer = respond(
        following.uid,
        following.read,
        after=following.after,
        previews=following.previews,
        who=following.place,
        same=(following.token, following.pk, following.ours, get_language()),
    )
    answer["request-id"] = current_request_id()
    return answer


def _admit(request: HttpRequest, parameters: dict[str, str]) -> Following:
    try:
        return Following(request, **parameters)
    finally:
        # A stream lasts for hours; the connection that this thread holds is given back now.
        give_back()


class SessionStream(Door):
    """Only described here; `stream` answers."""

    scopes = {"GET": READ}

    @operation(
        "sessions_events_stream",
        tag="events",
        response={(200, "text/event-stream"): OpenApiTypes.STR},
        query=(
            parameter(f"{DELTAS}[]", many=True, enum=list(PREVIEWS)),
            *OURS_TOO,
            OpenApiParameter("Last-Event-ID", OpenApiTypes.INT, OpenApiParameter.HEADER),
        ),
        summary="Follow a session's events as they come (server-sent events)",
    )
    def get(self, request: Any, uid: str) -> None:
        """Follow a session's events as they come."""


class ThreadStream(Door):
    """Only described here; `stream` answers."""

    scopes = {"GET": READ}

    @operation(
        "sessions_threads_stream",
        tag="threads",
        response={(200, "text/event-stream"): OpenApiTypes.STR},
        query=(
            parameter(f"{DELTAS}[]", many=True, enum=list(PREVIEWS)),
            *OURS_TOO,
            OpenApiParameter("Last-Event-ID", OpenApiTypes.INT, OpenApiParameter.HEADER),
        ),
        summary="Follow a thread's events as they come (server-sent events)",
    )
    def get(self, request: Any, uid: str, thread: str) -> None:
        """Follow a thread's events as they come."""


stream_session = described_by(SessionStream, stream)
stream_thread = described_by(ThreadStream, stream)
