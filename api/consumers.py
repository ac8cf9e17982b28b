"""The socket of a program: the frames of the chat protocol over one conversation's log.

It translates: frames are `incoming`'s, what they do is `commands`', what the log tells is
`projection`'s, streaming text is `stream`'s, following is `following`'s. Closing it cancels nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _

from accounts.api.throttling import count_request
from accounts.models import TokenScope, User
from accounts.persons import whose_place
from conversations.following import FollowingConsumer, Gone, after_in
from conversations.models import Conversation, Event
from conversations.models.conversation import ConversationQuerySet
from harness.errors import AgentError, Declined, Invalid, NotFound, TooMany
from jobs.prepared import Given, Prepared
from live import arriving
from live.hub import Delta
from live.joining import Joining
from reading.wholetext import json_of
from wire.ids import session_uid
from wire.socketframes import Refused

from . import incoming, visitors
from .commands import act, open_questions, scope_of
from .facts import TableFacts, effort_of
from .incoming import Frame, error
from .projection import Framed, LoggedEvent, frames_of, questions
from .stream import Ledger, PendingText, Placed, PlacedSnapshot, Whole
from .visitors import Look, Visitor

logger = logging.getLogger(__name__)

EVENTS_A_READ = 200
"""Of a log that is long behind; the rest follows in further reads."""
REQUESTS_REMEMBERED = 20
"""Of those that were sent: an answer that names none means one of them."""
FIRST_FRAME_SECONDS = 10.0
"""How long a socket that showed no token has for its first frame."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What one read of the log brought, up to event `seq`."""

    seq: int
    effort: str
    """What frames of thinking say."""
    frames: Sequence[Framed] = ()
    more: bool = False
    last: int = 0
    """The last event of the log when it was read."""


def _visible(given: Given) -> ConversationQuerySet:
    found = Conversation.objects.visible_to(given.user).filter(uid=given.uid)
    return found.select_related("agent_version", "owner", "organisation")


_VISIBLE = Prepared(_visible)
_VISIBLE_THERE = Prepared(lambda given: _visible(given).filter(organisation=given.organisation))
_AFTER = Prepared(
    lambda given: Event.objects.filter(conversation__uid=given.uid).after(given.seq)[:EVENTS_A_READ]
)

_joining: Joining[Batch] = Joining()


class ChatConsumer(FollowingConsumer):
    async def connect(self) -> None:
        self.prepare()
        self._uid = session_uid(self._uid)
        self._look: Look | None = None
        self._place: int | None = None
        """Whose share of the threads it takes; known since somebody came in."""
        self._ledger = Ledger()
        self._pending = PendingText()
        self._shown: deque[str] = deque(maxlen=REQUESTS_REMEMBERED)
        self._fresh = True
        self._waiting: asyncio.TimerHandle | None = None
        offered = self.scope.get("subprotocols", ())
        chosen = visitors.SUBPROTOCOL if visitors.SUBPROTOCOL in offered else None
        await self.accept(chosen)
        try:
            with translation.override(self._language):
                await self._let_in()
        except Gone as gone:
            await self.refuse(gone)

    async def disconnect(self, code: int) -> None:
        self._stop_waiting()
        await super().disconnect(code)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self._waiting is None:
            await super().receive(text_data, bytes_data)
            return
        self._stop_waiting()
        try:
            with translation.override(self._language):
                frame = incoming.parse(text_data)
            if not isinstance(frame, incoming.Auth):
                raise self._nobody(_("Nobody is signed in."))
            await self._enter(visitors.with_secret(frame.token))
        except Refused:
            await self.refuse(self._nobody(_("Nobody is signed in.")))
        except Gone as gone:
            await self.refuse(gone)

    # --- coming in --------------------------------------------------------------------------------

    async def _let_in(self) -> None:
        """Find out who it is, or wait for the first frame to say so. Raises `Gone`."""
        if visitors.in_address(self.scope, "token") is not None:
            said = error(
                "token_in_address",
                _("A token does not belong into an address, where logs keep it."),
                _(
                    "Send it in a header, as a subprotocol or in the first frame; or ask for a ticket."
                ),
            )
            raise Gone(said, incoming.CLOSED_UNAUTHORISED)
        try:
            after = after_in(self.scope, "ticket")
        except Invalid as problem:
            raise Gone(_declined(problem), incoming.CLOSED_BAD_ADDRESS) from None
        if after is not None:
            self._fresh, self._seen = False, after
        secret = visitors.secret_in(self.scope)
        ticket = visitors.in_address(self.scope, "ticket")
        if secret:
            await self._enter(visitors.with_secret(secret))
        elif ticket is not None:
            look = await self._in_thread(visitors.with_ticket, ticket, self._uid)
            if look is None:
                raise self._nobody(_("This ticket is used up, too old, or none."))
            await self._enter(look)
        elif self.session_key:
            await self._enter(visitors.with_session(self.session_key))
        else:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(FIRST_FRAME_SECONDS, self._give_up)

    async def _enter(self, look: Look) -> None:
        self._look = look
        if not self._fresh:  # else with the first read, which is then nobody else's
            await self._in_thread(self._count_entry)
        await self.begin()

    def _count_entry(self) -> Visitor:
        """In a thread. Raises `Gone`."""
        visitor = self._visitor()
        if visitor.caller is not None:
            try:
                count_request(visitor.caller.token, writes=False)
            except TooMany as problem:
                raise Gone(_declined(problem), incoming.CLOSED_UNAUTHORISED) from None
        return visitor

    def _give_up(self) -> None:
        self._waiting = None
        gone = self._nobody(_("Nobody said who they are."))
        self._tasks.append(asyncio.ensure_future(self.refuse(gone)))

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _nobody(self, message: str) -> Gone:
        hint = _("Show a token in a header, as a subprotocol, or in a first frame of type “auth”.")
        return Gone(error("anonymous", message, hint), incoming.CLOSED_UNAUTHORISED)

    def _visitor(self) -> Visitor:
        """In a thread: asked anew each time. Raises `Gone`."""
        visitor = self._look() if self._look is not None else None
        if visitor is None:
            raise self._nobody(_("Nobody is signed in."))
        try:
            visitor.require(TokenScope.CONVERSATIONS_READ)
        except Declined as problem:
            raise Gone(_declined(problem), incoming.CLOSED_UNAUTHORISED) from None
        if self._place is None:
            self._place = whose_place(visitor.user)
        return visitor

    def _conversation(self, visitor: Visitor) -> Conversation:
        who, where = visitor.user.pk, visitor.organisation
        if where is None:
            conversation = _VISIBLE.first(user=who, uid=self._uid)
        else:
            conversation = _VISIBLE_THERE.first(user=who, uid=self._uid, organisation=where.pk)
        if conversation is None:
            said = error(
                NotFound.code,
                _("There is no such conversation."),
                _("GET /api/conversations lists yours; POST /api/chat begins one."),
            )
            raise Gone(said, incoming.CLOSED_NOT_FOUND)
        return conversation

    # --- following --------------------------------------------------------------------------------

    async def look(self) -> Batch:
        """Sockets of one visitor that stand at the same place of the log read it together."""
        if self._fresh or self._look is None:
            first: Batch = await self._in_thread(self.read)
            return first
        key = (self._look, self._uid, self._seen, self._language)
        return await _joining.read(key, self.read, partial(self._read_in_turn, self._place))

    def read(self) -> Batch:
        if self._fresh:
            newcomer = self._count_entry()
            return self._begin_now(self._conversation(newcomer), newcomer.user)
        visitor = self._visitor()
        # Before the conversation: what is said of its switches must not be older than the events.
        rows = _AFTER.all(uid=self._uid, seq=self._seen)
        conversation = self._conversation(visitor)
        if self._seen > conversation.last_seq:
            said = error(
                Invalid.code,
                _("after: The log ends with event %(seq)d.") % {"seq": conversation.last_seq},
                _("Give the largest `seq` you were sent, or leave it out."),
            )
            raise Gone(said, incoming.CLOSED_BAD_ADDRESS)
        hers = conversation.owner_id == visitor.user.pk
        facts = TableFacts(conversation, traced=hers, reader=visitor.user)
        frames: list[Framed] = []
        seq = self._seen
        for row in rows:
            frames += frames_of(LoggedEvent(row.seq, row.uid, row.created_at, row.value), facts)
            seq = row.seq
        more = len(rows) == EVENTS_A_READ
        return Batch(seq, effort_of(conversation), frames, more, conversation.last_seq)

    def _begin_now(self, conversation: Conversation, reader: User) -> Batch:
        """From now on; of what was before, only what waits for an answer is said."""
        self._fresh = False
        self._seen = conversation.last_seq
        request_id, calls = open_questions(conversation, reader)
        asked = questions(request_id, calls)
        last = conversation.last_seq
        return Batch(last, effort_of(conversation), asked, last=last)

    def opening(self, snapshot: arriving.Snapshot, first: Any) -> Sequence[Any]:
        ready: Frame = {"type": "ready", "conversation_id": self._uid, "last_seq": first.seq}
        # What is arriving comes behind all of the log, of which this may be the first page only.
        self._nudged = max(self._nudged, first.last)
        return (ready, first, PlacedSnapshot(snapshot.blocks, after=self._nudged))

    def piece(self, delta: Delta) -> Delta:
        return Placed(
            delta.block, delta.kind, delta.offset, delta.text, delta.continues, after=self._nudged
        )

    async def fresh_snapshot(self) -> arriving.Snapshot:
        snapshot = await super().fresh_snapshot()
        # Asked afterwards: what it holds may be newer than the last nudge that was heard.
        last = await self._in_thread(self._last_seq)
        return PlacedSnapshot(snapshot.blocks, after=last)

    def _last_seq(self) -> int:
        found = Conversation.objects.filter(uid=self._uid).values_list("last_seq", flat=True)
        return found.first() or 0

    async def write(self, item: Any) -> None:
        match item:
            case Batch():
                self._ledger.effort = item.effort
                for frame in item.frames:
                    await self._say(
                        self._ledger.whole(frame) if isinstance(frame, Whole) else frame
                    )
                for held in self._pending.ready_after(item.seq):
                    await self._stream(held)
                if self._pending.overflown:
                    self._pending.overflown = False
                    self._outbox.catch_up()
                if item.more:
                    self._news.set()
            case Placed() | PlacedSnapshot():
                if self._pending.is_next(item, self._ledger):
                    await self._stream(item)
            case arriving.Closed():
                pass
            case _:
                await self._say(item)

    async def _stream(self, item: Placed | PlacedSnapshot) -> None:
        ledger = self._ledger
        for frame in ledger.piece(item) if isinstance(item, Placed) else ledger.snapshot(item):
            await self._say(frame)

    async def _say(self, frame: Frame) -> None:
        if frame["type"] in {"tool_approval_request", "plan_ready"}:
            self._shown.append(frame["request_id"])
        await self.send_text(encode(frame))

    # --- commands ---------------------------------------------------------------------------------

    async def answer(self, text: str | None) -> Sequence[Frame]:
        try:
            with translation.override(self._language):
                frame = incoming.parse(text)
        except Refused as refused:
            return (incoming.refusal(refused),)
        key = {} if frame.key is None else {"key": frame.key}
        try:
            return await self._answer(frame)
        except Gone as gone:
            self._news.set()  # the next read says so again, and hangs up
            return ({**gone.last_word, **key},)
        except AgentError as problem:
            return ({**_declined(problem), **key},)
        except Exception:
            logger.exception("A %s frame failed in conversation %s", frame.type, self._uid)
            said = error(
                "internal",
                _("The server could not do this."),
                _("Try again; if it keeps failing, tell whoever runs this server."),
            )
            return ({**said, **key},)

    async def _answer(self, frame: incoming.Incoming) -> Sequence[Frame]:
        match frame:
            case incoming.Ping():
                return ({"type": "pong"} | ({"key": frame.key} if frame.key else {}),)
            case incoming.Auth():
                return (
                    error("unknown_frame", _("It is known already who you are."), "", frame.key),
                )
            case _:
                act_on = partial(self._act, frame)
                answered: list[Frame] = await self._act_in_turn(self._place, act_on)
                return answered

    def _act(self, frame: incoming.Incoming) -> list[Frame]:
        visitor = self._visitor()
        conversation = self._conversation(visitor)
        visitor.require(scope_of(frame))
        if visitor.caller is not None:
            count_request(visitor.caller.token, writes=True)
        shown = tuple(self._shown)
        return act(frame, actor=visitor.user, conversation=conversation, shown=shown)


def encode(frame: Frame) -> str:
    return json_of(frame).decode()


def _declined(problem: AgentError) -> Frame:
    said = error(problem.code, str(problem.message), str(problem.hint))
    if isinstance(problem, Invalid) and problem.field:
        said["field"] = problem.field
    if isinstance(problem, TooMany):
        said["retry_after"] = problem.retry_after
    return said
