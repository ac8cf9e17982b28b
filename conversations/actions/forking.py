"""Forking: a new conversation of one's own that begins with the dialogue of another, up to a place, that one
may read.

What was said and done is copied, with whose words it is; what was decided, lent, spent and rated stays
where it was. Files come along as they were at that place, and so does what holds back (`goingalong`). Who
goes back within one is `branching`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from conversations import removals
from conversations.actions.branching import (
    Log,
    at_rest,
    require_files_settled,
    require_quiet_files,
)
from conversations.actions.conversations import create_conversation
from conversations.actions.own import copyable_conversation, require_readable
from conversations.ancestry import ancestors
from conversations.broughtwords import WordsBrought, behind_what_stays, bring_words
from conversations.checkpoints import Carried, carry_files
from conversations.goingalong import go_along
from conversations.judging import history_of
from conversations.log import append, begin_as_copy, entries_after
from conversations.models import Conversation, Event
from harness.errors import Conflict
from harness.events import (
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    AppEvent,
    BackgroundFinished,
    ContentRedacted,
    ContentSetAside,
    InputTaken,
    McpElsewhere,
    MessageEdited,
    MessagePinned,
    ModelUsage,
    RetryRequested,
    SessionMemoryWritten,
    SessionStatusIdle,
    SessionStatusRunning,
    SessionUpdated,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanToolEnd,
    SpanToolStart,
    TodosUpdated,
    ToolResult,
    ToolUse,
    UserMessage,
    WakeDue,
    WakeRequested,
    dump,
    load,
)
from harness.events import Event as EventValue
from harness.history import Entry, History
from harness.ids import new_conversation_id, new_event_id

_COPIED = (
    AgentMessage,
    AgentThinking,
    AgentThreadContextCompacted,
    ContentRedacted,
    ContentSetAside,
    InputTaken,
    McpElsewhere,
    MessageEdited,
    RetryRequested,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanToolEnd,
    SpanToolStart,
    SessionMemoryWritten,
    TodosUpdated,
    WakeRequested,
    ToolResult,
    ToolUse,
)
"""What the dialogue and its trust rest on. Answers to questions and votes are nobody's word here."""

_INPUTS = (UserMessage, BackgroundFinished, WakeDue)
"""Copied where they were taken."""

_NAMES = (
    "continues",
    "custom_tool_use_id",
    "event_id",
    "event_ids",
    "made_of",
    "mcp_tool_use_id",
    "model_request_id",
    "model_request_start_id",
    "through",
    "tool_use_id",
    "turn",
    "within",
)
"""Fields in which events name each other."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """The log as it was when the files were taken."""

    last_seq: int
    place: int


def fork_conversation(
    *,
    actor: User,
    conversation: Conversation,
    event_uid: str = "",
    title: str = "",
    first: Callable[[Conversation], None] | None = None,
) -> Conversation:
    """Begin a conversation of the actor's with the dialogue up to right before a message, or to the end of
    the turn of anything else, and with the files as they were there; without an id, to the end of
    the last turn that is over. `first` is called with it in the transaction, before anything is copied.

    Raises NotFound, Forbidden for who could not use its agent, Conflict while it works, for a place at which
    nothing was said yet and for a message that waits, what `create_conversation` raises where the agent
    is no longer on offer, and what `first` raises.
    """
    require_readable(actor, conversation)
    # Before the transaction: a long log takes seconds, in which nobody else could write on SQLite.
    read = entries_after(conversation.pk, 0)
    with transaction.atomic():
        log = _forkable(actor, conversation, read)
        place = log.edge(log.place_of(event_uid)) if event_uid else log.last_end()
        seen = _Seen(log.held.last_seq, place)
        origin = log.held
    if not seen.place:
        raise _nothing_said()
    uid = new_conversation_id()
    with removals.unless_begun(uid):
        # Files may take a while, for which no row is held.
        carried = carry_files(origin, seen.place, uid)
        with transaction.atomic():
            log = _forkable(actor, conversation, log.entries)
            if log.held.last_seq != seen.last_seq:
                raise Conflict(_("The conversation went on meanwhile."), hint=_("Try again."))
            removals.begun(uid)
            return _begun(actor, log, seen.place, uid, title, carried, first)


def _nothing_said() -> Conflict:
    return Conflict(_("Nothing was said before this."), hint=_("Begin a new conversation."))


def _forkable(actor: User, conversation: Conversation, read: Sequence[Entry]) -> Log:
    log = at_rest(copyable_conversation(actor, conversation), read)
    if not log.held.environment.has_workers:
        require_files_settled(log.held)
        require_quiet_files(log.held)
    return log


def _begun(
    actor: User,
    log: Log,
    place: int,
    uid: str,
    title: str,
    carried: Carried,
    first: Callable[[Conversation], None] | None,
) -> Conversation:
    held = log.held
    fork = create_conversation(
        actor=actor,
        organisation=held.organisation,
        agent=held.agent_version.agent,
        environment=held.environment,
        features=held.features.model_dump(),
        title=title or held.title,
        overrides=held.overrides,
        version=held.agent_version.number,
        uid=uid,
        preset=held.preset,
    )
    if first is not None:
        first(fork)
    named = None if title else _automatic_title(log.path)
    path = [
        entry
        for entry in log.path
        if entry is named
        or (entry.seq <= place and not isinstance(entry.event, SessionUpdated))
        or isinstance(entry.event, ContentSetAside | ContentRedacted | MessagePinned)
    ]
    rows = Event.objects.filter(conversation=held, seq__in=[entry.seq for entry in path])
    actors = dict(rows.exclude(actor=None).values_list("uid", "actor_id"))
    copied = copied_entries(path)
    if not copied:
        raise _nothing_said()
    begin_as_copy(
        fork,
        [entry for _uid, entry in copied],
        actors=[actors.get(was) for was, _entry in copied],
        origin=held,
    )
    carried.note(fork)
    go_along(actor, held, fork)
    # What others said to agents beside it that one has told this one of, and stays behind with these.
    bring_words(fork, behind_what_stays(held), way="fork")
    if source := _strangers_before(log, place, copied):
        append(fork.pk, [Entry.of(WordsBrought(way="fork", strangers=source))])
    fork.refresh_from_db()
    return fork


def _strangers_before(log: Log, place: int, copied: Sequence[tuple[str, Entry]]) -> str:
    """What strangers' words the dialogue rests on; empty: on none, or what is copied says so itself."""
    # With those that were left: what comes of them later says nothing of it by itself.
    before = [entry for entry in log.entries if entry.seq <= place]
    # Told where a fork ended that it began with, and of all that it began with.
    before += [
        entry for entry in log.path if entry.seq > place and isinstance(entry.event, WordsBrought)
    ]
    here = History(before)
    return untold(here, copied) if here.ever_tainted_by else strangers_above(log.held)


def untold(here: History, copied: Sequence[tuple[str, Entry]]) -> str:
    """What strangers' words a dialogue holds of which what is copied of it does not say so; empty: none."""
    told = History([entry for _uid, entry in copied])
    if told.ever_tainted_by and here.first_taint in dict(copied):
        # That says that they were there, and not always that they came again since a person spoke.
        return "" if told.tainted_by else here.tainted_by
    return here.ever_tainted_by


def strangers_above(conversation: Conversation) -> str:
    """What strangers' words those hold whose agents began it; empty: none."""
    above = Conversation.objects.filter(pk__in=ancestors(conversation))
    return next(filter(None, (history_of(each).read_anywhere for each in above)), "")


def _automatic_title(path: Sequence[Entry]) -> Entry | None:
    """What gave the title that the conversation has now, if that was made of a message and goes with it."""
    for entry in reversed(path):
        if isinstance(entry.event, SessionUpdated) and entry.event.title is not None:
            return entry if entry.event.made_of else None
    return None


def copied_entries(path: Sequence[Entry]) -> list[tuple[str, Entry]]:
    """The events that a fork begins with, under ids of their own, each with the id it had."""
    taken = {
        uid
        for entry in path
        if isinstance(entry.event, InputTaken)
        for uid in entry.event.event_ids
    }
    named: dict[str, str] = {}
    before: dict[str, str] = {}
    chosen: list[Entry] = []
    for entry in path:
        if _is_copied(entry, taken, named):
            named[entry.uid] = new_event_id()
            chosen.append(entry)
        elif chosen:
            before[entry.uid] = named[chosen[-1].uid]
    copied = [
        (entry.uid, Entry(named[entry.uid], _renamed(entry.event, named, before), at=entry.at))
        for entry in chosen
    ]
    lost = History([entry for _was, entry in copied]).open_request
    if lost is not None:
        # Its end will be heard, and paid for, where it was asked.
        free = SpanModelRequestEnd(
            model_request_start_id=lost.uid, model_usage=ModelUsage(), is_error=True, end="lost"
        )
        end = Entry.of(free)
        copied.append((end.uid, replace(end, at=chosen[-1].at)))
    return copied


def _is_copied(entry: Entry, taken: set[str], known: Mapping[str, str]) -> bool:
    event = entry.event
    if isinstance(event, _INPUTS):
        return entry.uid in taken
    if isinstance(event, MessageEdited):
        return event.event_id in taken
    if isinstance(event, ContentSetAside | ContentRedacted | MessagePinned):
        return event.event_id in known
    if isinstance(event, SessionUpdated):
        return event.made_of in known
    if isinstance(event, AppEvent):
        return bool(event.to_agent())
    return isinstance(event, _COPIED)


def _renamed(event: EventValue, named: Mapping[str, str], before: Mapping[str, str]) -> EventValue:
    if isinstance(event, SpanModelRequestEnd):
        # It was paid for where it was asked.
        event = event.model_copy(update={"model_usage": ModelUsage(), "edited": None})
    payload = dump(event)
    if isinstance(event, AgentThreadContextCompacted):
        # A summary may end with what is not copied; then it ends with what stood before that.
        payload["through"] = before.get(event.through, event.through)
    for name in _NAMES:
        value = payload.get(name)
        if isinstance(value, str):
            payload[name] = named.get(value, value)
        elif isinstance(value, list):
            payload[name] = [named.get(each, each) for each in value]
    reason = payload.get("stop_reason")
    if isinstance(reason, dict) and "event_ids" in reason:
        reason["event_ids"] = [named.get(each, each) for each in reason["event_ids"]]
    return load(payload)
