"""One AG-UI run: what the client's input does, and what of the log is the run, up to its end.

Frames and requests are `door`'s; the words of the protocol `projection`'s.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ag_ui.core import Interrupt
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.api.authentication import Caller, caller_of_token
from accounts.api.scopes import require_scope
from accounts.models import TokenScope
from accounts.persons import whose_place
from conversations import removals
from conversations.actions.conversations import (
    create_conversation,
    find_agent,
    find_environment,
)
from conversations.actions.media import brings_files
from conversations.actions.messages import steer_message
from conversations.actions.own import own_conversation
from conversations.defaults import default_agent, default_environment
from conversations.frontends import front_end_of
from conversations.models import Conversation, Event
from conversations.ratelimits import require_room
from harness.errors import Conflict, NotFound
from harness.events import (
    WAITS_FOR_WORKER,
    InputTaken,
    MessageWithdrawn,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusTerminated,
    SubagentEnded,
    SubagentStarted,
    UserMessage,
)
from harness.faults import place
from harness.frontends import FrontEnd
from harness.ids import derived_conversation_id
from programs.actions.sending import Decided, Input, Sent, send_events
from v1.door import READ
from v1.outgoing import Wire
from v1.stream import AT_ONCE, News
from v1.threads import threads_of
from wire.fieldnames import written
from wire.ids import names_session

from .below import SECONDS, Below, came_of
from .frontcalls import front_end_calls, require_none_pending, results_of
from .incoming import RunInput, ToolMessage, check_files, new_message, new_results, sent_along
from .interrupts import described, inputs_of, open_interrupts, require_none_open, subagents_of

ENTERED, OVER = "agui.entered", "agui.over"
"""Types of what `read` says beside the log's events."""


def find_or_begin(caller: Caller, thread: str, agent: str, environment: str) -> Conversation:
    """The caller's conversation of that id, or the one that its own name of a thread stands for.

    A name is each person's and organisation's own: somebody else's same one is another conversation.
    Raises NotFound for an id of ours that is not the caller's, Invalid for an agent or environment
    that is not on offer, Conflict while files of one of that name are removed that was deleted.
    """
    own = Conversation.objects.owned_by(caller.user).filter(organisation=caller.organisation)
    found = own.named(thread).first()
    if found is not None:
        return found
    uid = derived_conversation_id("agui", str(caller.organisation.pk), str(caller.user.pk), thread)
    mine = own.filter(uid=uid)
    found = mine.first()
    if found is not None:
        return found
    if names_session(thread):
        raise NotFound(
            _("There is no such conversation."),
            hint=_("Name a thread of your own without “%(prefix)s”.")
            % {"prefix": f"{thread.partition('_')[0]}_"},
        )
    actor, where = caller.user, caller.organisation
    chosen = (
        find_agent(actor=actor, organisation=where, wanted=agent)
        if agent
        else default_agent(actor, where)
    )
    place = (
        find_environment(actor=actor, organisation=where, wanted=environment)
        if environment
        else default_environment(actor, where)
    )
    removals.make_room(uid)
    try:
        with transaction.atomic():
            return create_conversation(
                actor=actor, organisation=where, agent=chosen, environment=place, uid=uid
            )
    except IntegrityError:
        # Another request with this name was first.
        return mine.get()


class Run:
    """An input that was taken, and the caller's right to follow what comes of it."""

    def __init__(self, caller: Caller, conversation: Conversation, body: RunInput) -> None:
        """Raises what the actions raise; then nothing has happened."""
        self.uid = conversation.uid
        self._conversation = conversation
        self._token = caller.token.uid
        self.place = whose_place(caller.user)
        self._unanswered: list[Interrupt] = []
        self._answered = {answer.interrupt_id for answer in body.resume or ()}
        message, tools = new_message(body), new_results(body)
        key = _key(body.run_id)
        known = Event.objects.filter(conversation=conversation, key=f"{key}:0")
        if message is not None and brings_files(message.content) and not known.exists():
            require_room(caller.user)
        check_files(body, message, tools, actor=caller.user)
        with transaction.atomic():
            held = own_conversation(caller.user, conversation)
            before = held.last_seq
            still_open = open_interrupts(held)
            along = sent_along(body, front_end_of(held))
            given = _give(caller, held, tools, along, body)
            sent: list[Sent] = []
            if message is not None:
                sent = _say(
                    caller, held, message, along, body, key, still_open, steered=bool(given)
                )
            elif body.resume:
                inputs = inputs_of(held, body.resume, still_open)
                if any(isinstance(one, Decided) for one in inputs):
                    require_scope(caller, TokenScope.APPROVALS_DECIDE)
                sent = _send(caller, held, inputs, key=key, at="resume")
                # A call that needs two people's consent is still open after the first one's.
                left = open_interrupts(held)
                if self._answered.intersection(interrupt.id for interrupt in left):
                    self._unanswered = left
            held.refresh_from_db(fields=["front_end_seq"])
            self.state = front_end_of(held).state
        here = [each.seq for each in sent if each.seq is not None and each.thread_uid is None]
        results = [each.seq for each in given if each.seq is not None]
        self._all_below = not here and not results
        """All of the answers went to conversations that this one started: what they do is not in its
        log, and nothing need happen here."""
        self._last = max([*results, *here], default=before)
        self._message = sent[0].uid if message is not None else None
        self._entered = False
        self._below = Below(conversation)
        # What the client brought itself of results is not told to it again.
        self.after = min(here) - 1 if here else self._last

    def read(self, after: int) -> News:
        """`stream.Read` of this run; called by one thread at a time, in order."""
        caller = caller_of_token(self._token)
        if caller is None or not caller.token.has_scope(READ):
            return News((), after, over=_failure(_("This token is not valid any more.")))
        mine = Conversation.objects.owned_by(caller.user).filter(pk=self._conversation.pk)
        if not mine.exists():
            return News((), after, over=_failure(_("The conversation was deleted."), "not_found"))
        # Before the rows: what came to rest by then is told by them.
        is_quiet = self._all_below and self._is_quiet()
        rows = list(Event.objects.filter(conversation=self._conversation).after(after)[:AT_ONCE])
        events: list[Wire] = []
        for row in rows:
            value = row.value
            if not self._entered:
                before = self._before(value)
                if before is not None and before["type"] != ENTERED:
                    return News((), row.seq, over=before)
                if before is None:
                    continue
                self._entered = True
                events.append({**before, "id": row.uid})
            events.append(self._told(row, value))
            if self._unanswered and row.seq >= self._last:
                return News(events, row.seq, over=self._over(self._unanswered))
            if (
                isinstance(value, SessionStatusIdle)
                and row.seq > self._last
                and (rest := self._rest(value)) is not None
            ):
                return News(events, row.seq, over=rest)
            if isinstance(value, SessionStatusTerminated):
                return News(events, row.seq, over=_failure(_("The conversation has ended.")))
        seq = rows[-1].seq if rows else after
        if self._entered:
            events += self._below.news()
        if is_quiet and len(rows) < AT_ONCE:
            left = open_interrupts(mine.get())
            return News(events, seq, over=self._over(left))
        again = SECONDS if self._below.any else None
        return News(events, seq, more=len(rows) == AT_ONCE, again=again)

    def _told(self, row: Event, value: Any) -> Wire:
        told = {"type": row.type, "id": row.uid, "value": value}
        if isinstance(value, SubagentStarted):
            self._below.begun()
        if isinstance(value, SubagentEnded):
            # It may have begun before this run.
            started = Event.objects.filter(
                conversation=self._conversation,
                type="x.subagent_started",
                subject=value.tool_use_id,
            )
            told["began"] = next((began.value for began in started), None)
            told["came"] = came_of(self._conversation, row.seq, value)
        return told

    def _before(self, value: Any) -> Wire | None:
        """ENTERED where the run begins, a message's where it is taken; None for what is of another
        turn; else why the run never begins."""
        if self._message is None:
            return {"type": ENTERED}
        match value:
            case InputTaken(event_ids=taken) if self._message in taken:
                return {"type": ENTERED}
            case MessageWithdrawn(event_id=gone) if gone == self._message:
                return {"type": OVER}
            case SessionStatusTerminated():
                return _failure(_("The conversation has ended."))
        return None

    def _rest(self, value: SessionStatusIdle) -> Wire | None:
        """How the run ends with this rest; None for one that waits for no person but for a program."""
        reason = value.stop_reason
        asked = reason.event_ids if isinstance(reason, RequiresAction) else ()
        here = described(self._conversation, asked)
        pending = front_end_calls(self._conversation, asked)
        if asked and not here and not pending:
            return None
        below = [each for each in open_interrupts(self._conversation) if each.subagent_run_id]
        return {**self._over([*here, *below]), "pending": pending, "rest": value}

    def _over(self, interrupts: list[Interrupt]) -> Wire:
        below = subagents_of(self._conversation, interrupts, self._answered)
        return {"type": OVER, "interrupts": interrupts, "below": below}

    def _is_quiet(self) -> bool:
        """Neither this conversation nor one that it started works or is about to."""
        working = threads_of(self._conversation).filter(
            Q(status__in=[Conversation.Status.RUNNING, Conversation.Status.RESCHEDULING])
            | Q(owes_run=True)
            | Q(stop_reason=WAITS_FOR_WORKER)
        )
        return not working.exists()


def _give(
    caller: Caller,
    held: Conversation,
    tools: Sequence[ToolMessage],
    along: FrontEnd,
    body: RunInput,
) -> list[Sent]:
    """Results of the front end's tools. They bring what else it sends, unless a message does."""
    if not tools:
        return []
    last = body.messages[-1].get("role") == "tool"
    results = results_of(held, tools, alone=last and not body.resume)
    if results and last and along != front_end_of(held):
        results[-1] = results[-1].model_copy(update={"front_end": along})
    return _send(caller, held, results, at="messages")


def _say(
    caller: Caller,
    held: Conversation,
    message: UserMessage,
    along: FrontEnd,
    body: RunInput,
    key: str,
    still_open: list[Interrupt],
    *,
    steered: bool,
) -> list[Sent]:
    """`steered`: results came before it, so that it joins the turn that goes on with them."""
    known = Event.objects.filter(conversation=held, key=f"{key}:0").first()
    sent_with = None if along == FrontEnd() else along
    said: list[Input] = [message.model_copy(update={"front_end": sent_with})]
    if known is None:
        require_none_open(still_open)
        require_none_pending(held)
    elif not isinstance(known.value, UserMessage) or known.value.content != message.content:
        raise Conflict(
            _("This runId was used for another message."), hint=_("Use a new one for each run.")
        )
    at = place("messages", len(body.messages) - 1, "content")
    sent = _send(caller, held, said, key=key, at=at)
    if known is None and steered:
        steer_message(actor=caller.user, conversation=held, message_uid=sent[0].uid)
    return sent


def _send(
    caller: Caller,
    held: Conversation,
    inputs: Sequence[Input],
    *,
    at: str,
    key: str | None = None,
) -> list[Sent]:
    """What is wrong with what a person or the client said is told of the place `at` where it stood."""
    with written(dict.fromkeys(_SAID, at)):
        return send_events(actor=caller.user, conversation=held, events=inputs, key=key, field="")


_SAID = ("content", "edited_input", "reason")
"""What the actions call it."""


def _key(run_id: str) -> str:
    return f"agui:{hashlib.sha256(run_id.encode()).hexdigest()[:40]}"


def _failure(words: str, code: str = "ended") -> Wire:
    return {"type": "error", "error": {"message": words, "code": code}}
