"""The command line on the server's own machine: the same actions as every door, for one person.

Without a broker this process runs what it asks for, and gives it back when it ends.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings

from accounts.actions.organisations import ensure_personal_organisation
from accounts.models import Organisation, User
from agents.models import Agent, Environment
from conversations import log
from conversations.actedon import acted_on
from conversations.actions.branching import go_elsewhere
from conversations.actions.conversations import (
    create_conversation,
    find_agent,
    find_environment,
)
from conversations.actions.deciding import decide_call
from conversations.actions.forking import fork_conversation
from conversations.actions.messages import post_message, stop
from conversations.actions.setaside import set_aside
from conversations.defaults import default_agent, default_environment
from conversations.models import Conversation, Event
from conversations.models.conversation import ConversationQuerySet
from conversations.wakes import wake
from harness.errors import Invalid, NotFound
from harness.events import AgentToolUse, RequiresAction, SessionStatusIdle, dump
from harness.history import Entry
from jobs import here
from jobs.engine import engine
from jobs.prepared import Prepared
from keeping import export
from live.hub import hub

from .door import Item, Row, Stored, Streaming, Summary

_VISIBLE = Prepared(
    lambda given: Conversation.objects.visible_to(given.user).filter(pk=given.pk).values_list("pk")
)

LOOK_SECONDS = 0.1
"""How often the log and the streaming text are looked at: quicker than a person reads."""
NAMED = 20
"""How many names an error lists before it stops."""


def find_person(name: str) -> User:
    """The active person with this username or e-mail address; with none given, the only one there is."""
    people = User.objects.filter(is_active=True)
    if name:
        # An address is whose it is, also where somebody's user name says the same.
        found = people.filter(email__iexact=name).first() or people.filter(username=name).first()
        if found is None:
            raise NotFound(
                f"There is no active person called {name}.", hint="Give a username with --user."
            )
        return found
    some = list(people.order_by("pk")[: NAMED + 1])
    if len(some) == 1:
        return some[0]
    names = ", ".join(person.username for person in some[:NAMED])
    hint = f"Give one with --user: {names}" if some else "Start the site and open its set-up link."
    raise Invalid("It is not clear for whom.", field="user", hint=hint)


def find_organisation(person: User, wanted: str) -> Organisation:
    """The person's organisation of that id or name; with none given, the first she joined."""
    own = Organisation.objects.visible_to(person)
    if not wanted:
        return own.order_by("pk").first() or ensure_personal_organisation(user=person)
    found = own.filter(uid=wanted).first() or own.filter(name=wanted).first()
    if found is None:
        names = ", ".join(own.values_list("name", flat=True)[:NAMED])
        raise NotFound("There is no such organisation.", hint=f"There is: {names}")
    return found


class LocalDoor:
    """See `door.Door`."""

    def __init__(self, person: User, organisation: Organisation) -> None:
        self._person = person
        self._organisation = organisation
        if not settings.AGENTSITE_BROKER_URL:
            here.start_recurring()  # what was put off, or left by another process, goes on as well

    def conversations(self, limit: int) -> list[Summary]:
        listed = (
            self._visible()
            .filter(owner=self._person)
            .listed_in(self._organisation)
            .order_by("-active_at", "-id")
        )
        return [_summary(conversation) for conversation in listed[:limit]]

    def describe(self, uid: str) -> Summary:
        return _summary(self._conversation(uid))

    def begin(self, *, agent: str, environment: str, title: str) -> str:
        conversation = create_conversation(
            actor=self._person,
            organisation=self._organisation,
            agent=self._agent(agent),
            environment=self._environment(environment),
            title=title,
        )
        return conversation.uid

    def post(self, uid: str, text: str, *, interrupt: bool = False) -> None:
        post_message(
            actor=self._person, conversation=self._conversation(uid), text=text, interrupt=interrupt
        )

    def stop(self, uid: str) -> None:
        stop(actor=self._person, conversation=self._conversation(uid))

    def decide(
        self,
        uid: str,
        call: str,
        *,
        allow: bool,
        reason: str = "",
        edited: dict[str, Any] | None = None,
        read_to: str = "",
    ) -> None:
        decide_call(
            actor=self._person,
            conversation=self._conversation(uid),
            call_uid=call,
            allow=allow,
            reason=reason,
            edited_input=edited,
            read_to=read_to,
        )

    def set_aside(self, uid: str, event: str) -> None:
        set_aside(actor=self._person, conversation=self._conversation(uid), event_uid=event)

    def branch(
        self,
        uid: str,
        act: str,
        event: str,
        *,
        content: str = "",
        model: str = "",
        files: bool = True,
    ) -> None:
        go_elsewhere(
            actor=self._person,
            conversation=self._conversation(uid),
            act=act,
            event_uid=event,
            content=content,
            model=model,
            files=files,
        )

    def fork(self, uid: str, event: str) -> str:
        own = self._conversation(uid)
        return fork_conversation(actor=self._person, conversation=own, event_uid=event).uid

    def wake(self, uid: str) -> None:
        wake(self._conversation(uid).pk)

    def events(self, uid: str) -> Iterator[Row]:
        own = self._conversation(uid)
        return (_row(entry) for entry in log.entries_after(own.pk, 0))

    def last_event(self, uid: str) -> str:
        last = Event.objects.filter(conversation=self._conversation(uid)).order_by("-seq").first()
        return last.uid if last else ""

    def follow(self, uid: str, *, after: str = "") -> Iterator[Item]:
        own = self._conversation(uid)
        seq = 0
        if after:
            event = Event.objects.filter(conversation=own, uid=after).first()
            if event is None:
                raise NotFound("There is no such event in this conversation.")
            seq = event.seq
        said: dict[str, int] = {}
        with _interrupted_at_rest() as rest:
            yield from self._looks(own, uid, seq, said, rest)

    def _looks(
        self,
        own: Conversation,
        uid: str,
        seq: int,
        said: dict[str, int],
        rest: Callable[[float], None],
    ) -> Iterator[Item]:
        while True:
            if not _VISIBLE.exists(user=self._person.pk, pk=own.pk):
                raise NotFound("There is no such conversation any more.")
            # The text first: what is stored meanwhile is then printed whole, and nothing twice.
            arriving = async_to_sync(hub.snapshot)(uid)
            stored = log.entries_after(own.pk, seq)
            told = self._acted_on(stored, own)
            for entry in stored:
                seq = entry.seq
                acts_on = told.get(entry.uid)
                yield Stored(_row(entry) | ({"x_acts_on": acts_on} if acts_on else {}))
            over = {entry.uid for entry in stored}
            for block in arriving:
                offset = said.get(block.block, 0)
                if block.kind == "text" and block.block not in over and len(block.text) > offset:
                    said[block.block] = len(block.text)
                    yield Streaming(block.block, offset, block.text[offset:])
            rest(LOOK_SECONDS)

    def export(self, uid: str, form: str) -> Iterator[str]:
        own = self._conversation(uid)
        return export.as_json(own) if form == "json" else export.as_markdown(own)

    def close(self) -> None:
        """What runs here stops where another process can take it up."""
        engine.drain(settings.AGENTSITE_DRAIN_SECONDS)
        hub.stop()

    def _acted_on(self, stored: Sequence[Entry], own: Conversation) -> Mapping[str, Row]:
        """What calls among these that ask act on, where their arguments only name it, by their ids; by those
        of rests the same of calls that were asked about anew since they were told."""
        calls = {
            entry.uid: entry.event.name for entry in stored if isinstance(entry.event, AgentToolUse)
        }
        rests = {
            entry.uid: entry.event.stop_reason.event_ids
            for entry in stored
            if isinstance(entry.event, SessionStatusIdle)
            and isinstance(entry.event.stop_reason, RequiresAction)
        }
        return acted_on(self._person, own, calls, rests)

    # --- finding ----------------------------------------------------------------------------------

    def _visible(self) -> ConversationQuerySet:
        return Conversation.objects.visible_to(self._person).select_related(
            "agent_version__agent", "environment", "organisation", "owner", "parent"
        )

    def _conversation(self, uid: str) -> Conversation:
        found = self._visible().named(uid).first()
        if found is None:
            raise NotFound("There is no such conversation.", hint="See `agent conversations`.")
        return found

    def _agent(self, wanted: str) -> Agent:
        if wanted:
            return find_agent(actor=self._person, organisation=self._organisation, wanted=wanted)
        return default_agent(self._person, self._organisation)

    def _environment(self, wanted: str) -> Environment:
        if wanted:
            return find_environment(
                actor=self._person, organisation=self._organisation, wanted=wanted
            )
        return default_environment(self._person, self._organisation)


@contextmanager
def _interrupted_at_rest() -> Iterator[Callable[[float], None]]:
    """Ctrl+C is heeded between two looks alone, where it cuts through no query and holds no lock."""
    pressed = False

    def press(_number: int, _frame: object) -> None:
        # Nothing but a flag: an Event's lock may be held by the very thread that is interrupted.
        nonlocal pressed
        pressed = True

    def rest(seconds: float) -> None:
        nonlocal pressed
        time.sleep(seconds)
        if pressed:
            pressed = False
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield rest
        return
    before = signal.signal(signal.SIGINT, press)
    try:
        yield rest
    finally:
        signal.signal(signal.SIGINT, before)


def _summary(conversation: Conversation) -> Summary:
    return Summary(
        uid=conversation.uid,
        title=conversation.title,
        status=conversation.status,
        stop_reason=conversation.stop_reason,
        agent=conversation.agent_version.agent.name,
        active_at=conversation.active_at.isoformat(),
        busy=conversation.is_running or conversation.owes_run,
    )


def _row(entry: Entry) -> Row:
    return {"id": entry.uid, "seq": entry.seq, **dump(entry.event)}
