"""The socket of a conversation's page: changes after the browser's last event, streaming text, commands.

It translates and decides nothing: frames are `protocol`'s, what may be done is `actions`', what is
drawn is `presentation`'s, following is `following`'s. Closing it cancels nothing; whoever comes back
reads the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from django.utils import translation
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.persons import whose_place
from accounts.sessions import user_of_session
from chat import protocol
from chat.presentation import frames
from chat.presentation.arriving import Arriving, Finished, with_drawn
from conversations.actions import answers, branching, messages
from conversations.actions.background import cancel_all_background, cancel_background
from conversations.actions.deciding import decide_call
from conversations.actions.queue import discard_queue, move_message, release_queue
from conversations.actions.setaside import set_aside
from conversations.actions.together import Shown, allow_calls, deny_calls, deny_with_message
from conversations.following import FollowingConsumer, Gone, after_in
from conversations.models import Conversation, Event
from harness.errors import Declined, Invalid, LimitReached, NotFound
from jobs.prepared import Prepared
from keeping.actions.feedback import give_feedback
from keeping.actions.seen import mark_as_seen
from live.arriving import Closed, Snapshot
from live.hub import Delta
from rendering.aside import drawn_for
from tools_app.questions import Answer
from wire.socketframes import Refused

logger = logging.getLogger(__name__)

MAX_EVENTS_BEHIND = 1_000
"""Further behind than this, loading the page again is cheaper than patching it."""
MAX_UNDRAWN = 16
"""Stretches of arriving text that wait to be drawn; with more, the text stays plain until its end."""

_VISIBLE = Prepared(lambda given: Conversation.objects.visible_to(given.user).filter(uid=given.uid))


class ConversationConsumer(FollowingConsumer):
    async def connect(self) -> None:
        self.prepare()
        self._arriving = Arriving()
        self._finished: list[Finished] = []
        self._draws = False
        self._place: int | None = None
        await self.accept()
        try:
            with translation.override(self._language):
                self._seen = after_in(self.scope) or 0
        except Invalid as problem:
            said = protocol.Error(problem.code, str(problem.message), str(problem.hint))
            await self.refuse(Gone(said, protocol.CLOSED_BAD_ADDRESS))
            return
        await self.begin()

    # --- text that is arriving --------------------------------------------------------------------

    async def snapshot(self) -> Snapshot:
        plain = await super().snapshot()
        finished = self._arriving.read(plain)
        if not finished:
            return plain
        drawn: Snapshot = await self._in_turn(with_drawn, plain, finished)
        return drawn

    def arrived(self, delta: Delta) -> None:
        finished = self._arriving.take(delta)
        if finished is None or len(self._finished) >= MAX_UNDRAWN:
            return
        self._finished.append(finished)
        if not self._draws:
            self._draws = True
            self._go_on_with(self._draw())

    async def _draw(self) -> None:
        """Beside the text, which does not wait for it."""
        while self._finished:
            drawn: protocol.Rendered = await self._in_turn(self._finished.pop(0).drawn)
            await self._outbox.deliver(drawn)
        self._draws = False

    async def write(self, item: protocol.Outgoing) -> None:
        if isinstance(item, Closed):
            self._arriving.end(item.block)
        await self.send_text(protocol.encode(item))

    # --- what is drawn ----------------------------------------------------------------------------

    async def look(self) -> protocol.Changed:
        if self._place is None:
            changed: protocol.Changed | None = await self._in_thread(self._first_look)
            if changed is not None:
                return changed
        changed = await self._in_turn(self.read)
        assert changed is not None  # noqa: S101 - what `read` returns
        return changed

    async def _in_turn(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What draws, in a thread."""
        place = await self._whose()

        def for_her() -> Any:
            with drawn_for(lambda: place):
                return function(*arguments)

        return await self._read_in_turn(place, for_her)

    async def _whose(self) -> int:
        if self._place is None:
            self._place = await self._in_thread(lambda: whose_place(self._user()))
        return self._place

    def _first_look(self) -> protocol.Changed | None:
        """Who is there, and what `read` says where there is nothing to draw: mostly, behind a page."""
        user = self._user()
        self._place = whose_place(user)
        return self._unless_behind(self._conversation(user))

    def read(self) -> protocol.Changed:
        """What happened after the browser's last event. Raises `Gone`."""
        reader = self._user()
        conversation = self._conversation(reader)
        unchanged = self._unless_behind(conversation)
        if unchanged is not None:
            return unchanged
        changes = frames.changes(conversation, self._seen, reader=reader)
        if changes.reload:
            raise Gone(protocol.Reload(), protocol.CLOSED_STALE)
        return protocol.Changed(
            changes.seq, changes.units, changes.removed, changes.panels, changes.cut
        )

    def _unless_behind(self, conversation: Conversation) -> protocol.Changed | None:
        behind = conversation.last_seq - self._seen
        if behind == 0:
            return protocol.Changed(self._seen, (), (), {})
        if behind < 0 or behind > MAX_EVENTS_BEHIND:
            raise Gone(protocol.Reload(), protocol.CLOSED_STALE)
        return None

    # --- commands ---------------------------------------------------------------------------------

    async def answer(self, text: str | None) -> Sequence[protocol.Outgoing]:
        try:
            with translation.override(self._language):
                frame = protocol.parse(text)
        except Refused as refused:
            return (protocol.refusal(refused),)
        answer: protocol.Outgoing
        try:
            answer = await self._answer(frame)
        except Gone as gone:
            self._news.set()
            answer = replace(gone.last_word, key=frame.key)
        except (Declined, LimitReached) as declined:
            self._news.set()
            answer = protocol.Error(
                declined.code, str(declined.message), str(declined.hint), frame.key
            )
        except Exception:
            logger.exception("A %s frame failed in conversation %s", frame.type, self._uid)
            answer = protocol.Error(
                "internal",
                _("The server could not do this."),
                _("Try again; if it keeps failing, tell whoever runs this server."),
                frame.key,
            )
        return (answer,)

    async def _answer(self, frame: protocol.Incoming) -> protocol.Outgoing:
        match frame:
            case protocol.Ping():
                return protocol.Pong()
            case protocol.Resync():
                return await self.snapshot()
            case _:
                event: Event | None = await self._act_in_turn(
                    await self._whose(), partial(self._act, frame)
                )
                return protocol.Accepted(
                    frame.key, event.seq if event else None, event.uid if event else None
                )

    def _act(self, frame: protocol.Incoming) -> Event | None:
        actor = self._user()
        conversation = self._conversation(actor)
        match frame:
            case protocol.PostMessage():
                return messages.post_message(
                    actor=actor,
                    conversation=conversation,
                    text=frame.content,
                    key=frame.key,
                    interrupt=frame.interrupt,
                    files=frame.files,
                )
            case protocol.Stop():
                return messages.stop(actor=actor, conversation=conversation, holds_queue=True)
            case protocol.Move():
                return move_message(
                    actor=actor,
                    conversation=conversation,
                    message_uid=frame.message,
                    before_uid=frame.before or "",
                )
            case protocol.Release():
                return release_queue(actor=actor, conversation=conversation)
            case protocol.Discard():
                return discard_queue(actor=actor, conversation=conversation)
            case protocol.Withdraw():
                return messages.withdraw_message(
                    actor=actor, conversation=conversation, message_uid=frame.message
                )
            case protocol.Edit():
                return messages.edit_message(
                    actor=actor,
                    conversation=conversation,
                    message_uid=frame.message,
                    text=frame.content,
                )
            case protocol.Steer():
                return messages.steer_message(
                    actor=actor, conversation=conversation, message_uid=frame.message
                )
            case protocol.Resend():
                return branching.edit_and_resend(
                    actor=actor,
                    conversation=conversation,
                    message_uid=frame.message,
                    text=frame.content,
                    key=frame.key,
                    files=frame.files,
                )
            case protocol.Regenerate():
                return branching.regenerate(
                    actor=actor,
                    conversation=conversation,
                    event_uid=frame.event,
                    model=frame.model,
                    files=frame.files,
                )
            case protocol.Rewind():
                return branching.rewind(
                    actor=actor,
                    conversation=conversation,
                    event_uid=frame.event,
                    files=frame.files,
                )
            case protocol.SwitchBranch():
                return branching.switch_branch(
                    actor=actor,
                    conversation=conversation,
                    event_uid=frame.event,
                    files=frame.files,
                )
            case protocol.Feedback():
                return give_feedback(
                    actor=actor,
                    conversation=conversation,
                    event_uid=frame.event,
                    rating=frame.rating,
                )
            case protocol.SetAside():
                return set_aside(actor=actor, conversation=conversation, event_uid=frame.event)
            case protocol.Retry():
                return messages.request_retry(actor=actor, conversation=conversation)
            case protocol.Decide():
                return decide_call(
                    actor=actor,
                    conversation=conversation,
                    call_uid=frame.call,
                    allow=frame.allow,
                    reason=frame.reason,
                    shown=frame.shown,
                    seen_round=frame.round,
                )
            case protocol.AllowCalls():
                return allow_calls(
                    actor=actor,
                    conversation=conversation,
                    shown=[Shown(one.call, one.shown, one.round) for one in frame.calls],
                )
            case protocol.DenyCalls(message=None):
                return deny_calls(
                    actor=actor,
                    conversation=conversation,
                    call_uids=frame.calls,
                    reason=frame.reason,
                )
            case protocol.DenyCalls(message=str(message)):
                return deny_with_message(
                    actor=actor,
                    conversation=conversation,
                    call_uids=frame.calls,
                    message_uid=message,
                )
            case protocol.AnswerQuestions(skip=True):
                return answers.skip_questions(
                    actor=actor, conversation=conversation, call_uid=frame.call
                )
            case protocol.AnswerQuestions():
                return answers.answer_questions(
                    actor=actor,
                    conversation=conversation,
                    call_uid=frame.call,
                    answers=[
                        Answer(chosen=tuple(given.chosen), text=given.text)
                        for given in frame.answers
                    ],
                )
            case protocol.GiveResult(refuse=True):
                return answers.refuse_custom_tool(
                    actor=actor,
                    conversation=conversation,
                    call_uid=frame.call,
                    reason=frame.content,
                )
            case protocol.GiveResult():
                return answers.answer_custom_tool(
                    actor=actor,
                    conversation=conversation,
                    call_uid=frame.call,
                    content=frame.content,
                )
            case protocol.SwitchFeature():
                return messages.set_feature(
                    actor=actor,
                    conversation=conversation,
                    feature=frame.feature,
                    enabled=frame.enabled,
                )
            case protocol.Seen():
                mark_as_seen(actor=actor, conversation=conversation, seq=frame.seq)
                return None
            case protocol.CancelBackground():
                cancel_background(
                    actor=actor, conversation=conversation, background_uid=frame.background
                )
                return None
            case protocol.CancelAllBackground():
                cancel_all_background(actor=actor, conversation=conversation)
                return None
            case _:
                raise TypeError(f"not a command: {frame.type}")

    # --- who is there -----------------------------------------------------------------------------

    def _user(self) -> User:
        """Asked anew each time: an open socket outlives sign-outs and memberships."""
        user = user_of_session(self.session_key)
        if user is None:
            raise Gone(
                protocol.Error("anonymous", _("Nobody is signed in."), _("Sign in again.")),
                protocol.CLOSED_ANONYMOUS,
            )
        return user

    def _conversation(self, user: User) -> Conversation:
        conversation = _VISIBLE.first(user=user.pk, uid=self._uid)
        if conversation is None:
            raise Gone(
                protocol.Error(
                    NotFound.code,
                    _("There is no such conversation."),
                    _("Open one from the list of conversations."),
                ),
                protocol.CLOSED_NOT_FOUND,
            )
        return conversation
