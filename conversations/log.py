"""The only writer of events, and of what a conversation's row says about its log.

One call is one transaction: the numbers, the rows, the projections, the money. Readers are nudged
after the commit. Whether somebody may append is the caller's question (`actions`), whether a run
still owns its conversation is answered here, in the same transaction as the write.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from harness.errors import LeaseLost
from harness.events import (
    WAITS_FOR_WORKER,
    AgentMessage,
    AgentThreadContextCompacted,
    AppEvent,
    CompactionRequested,
    CompactionSkipped,
    ContentRedacted,
    ContentSetAside,
    EndTurn,
    InputTaken,
    MessageEdited,
    MessageWithdrawn,
    RequiresAction,
    RetryRequested,
    Rewound,
    SessionError,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SessionStatusTerminated,
    SessionUpdated,
    StopReason,
    SubagentEnded,
    UserCustomToolResult,
    UserDefineOutcome,
    UserInterrupt,
    UserMessage,
    WakeRequested,
    dump,
    dump_text,
    load,
    subject_of,
)
from harness.events import Event as EventValue
from harness.history import Entry, History
from harness.redacted import redacted
from jobs.prepared import Prepared, PreparedUpdate
from live.hub import hub

from . import delays, logsql, projections, redactions
from .askers import keep_asker, note_asker
from .branches import Standing, standing
from .counting import count_error
from .fileevents import FilesRestored, FilesReverted
from .forgetting import Place, Removed, elsewhere, forget
from .models import Conversation, Event, Run
from .search import index_edited, index_event
from .writers import instructs

COPIED_AT_ONCE = 500
"""Events that one statement stores."""

_AFTER = Prepared(
    lambda given: (
        Event.objects.filter(conversation=given.conversation)
        .after(given.seq)
        .values_list("uid", "seq", "payload", "created_at")
    )
)
SENT_BEFORE = Prepared(
    lambda given: Event.objects.filter(conversation=given.conversation, key=given.key)
)
_WAKING = Prepared(
    lambda given: Event.objects.filter(
        conversation=given.conversation,
        type__in=("x.background_finished", "x.wake_due", "x.compaction_requested"),
        processed_at=None,
    ).values_list("pk")[:1]
)
_LAST_WORD = Prepared(
    lambda given: (
        Event.objects.filter(
            conversation=given.conversation,
            type__in=(
                "x.queue_held",
                "x.queue_released",
                "user.message",
                "user.define_outcome",
                "x.retry_requested",
                "x.content_set_aside",
                "x.rewound",
            ),
        )
        .order_by("-seq")
        .values_list("type")[:1]
    )
)
_ASKED_TO_COMPACT = PreparedUpdate(
    lambda given: Event.objects.filter(
        conversation=given.conversation, type="x.compaction_requested", processed_at=None
    ),
    lambda given: {"processed_at": given.now},
)
_BESIDE = Prepared(
    lambda given: Conversation.objects.filter(
        Q(pk=given.parent) | Q(parent=given.parent) | Q(parent=given.conversation),
        others_wrote=True,
    ).values_list("pk")[:1]
)
"""Of those above, below and below the same one, which write to each other in a team, one in which others than
its owner wrote."""
_HANDLED = PreparedUpdate(
    lambda given: Event.objects.filter(
        conversation=given.conversation,
        processed_at=None,
        type__in=(given.one, given.other),
        seq__lt=given.before,
    ),
    lambda given: {"processed_at": given.now},
)


def append(
    conversation_id: int,
    entries: Sequence[Entry],
    *,
    run: Run | None = None,
    actor: User | None = None,
    key: str | None = None,
    expected_seq: int | None = None,
    stands: Standing | None = None,
    held: Conversation | None = None,
) -> list[Event]:
    """Store `entries` at the end of the log and return their rows.

    With `run`: raises `LeaseLost`, storing nothing, when that run no longer holds the conversation.
    `key` is the sender's idempotency key, for the first entry: the table takes none twice, and who gives one
    has looked for it (`SENT_BEFORE`) with the conversation held. With `expected_seq`: nothing is written, and
    nothing returned, when that is not the number of the log's last event. A model call is stored only
    with what it may cost reserved: raises `projections.NotStored`, storing nothing, where a budget has no
    room for it. `stands` is what the conversation's columns say behind an `x.rewound` among `entries`, for
    whoever knows; else the whole log is read for it, while all others wait. `held` is the conversation, for
    whoever has locked and read it in this transaction and appended nothing since but with it: what is raised
    then is that whole transaction's end. Raises `Conversation.DoesNotExist`.
    """
    with transaction.atomic(savepoint=held is None):
        # The row lock gives each event its number: order of seq is order of commit.
        conversation = held or logsql.hold(conversation_id)
        if run is not None and not logsql.running([run.pk]):
            raise _lease_lost(run)
        if expected_seq is not None and conversation.last_seq != expected_seq:
            return []
        if actor is not None and actor.pk == conversation.owner_id:
            conversation.owner = actor
        now = timezone.now()
        rows = [
            _row(conversation.pk, conversation.last_seq + place, entry, at=now)
            for place, entry in enumerate(entries, start=1)
        ]
        for row in rows:
            row.conversation, row.actor, row.run = conversation, actor, run
        if key is not None:
            rows[0].key = key
        logsql.insert(rows)
        conversation.last_seq += len(rows)
        conversation.active_at = now
        for row, entry in zip(rows, entries, strict=True):
            if not entry.event.plain:
                _project(conversation, row, entry.event, stands)
        logsql.keep(conversation)
        interrupts = any(isinstance(entry.event, UserInterrupt) for entry in entries)
        transaction.on_commit(partial(_nudge, conversation.uid, conversation.last_seq, interrupts))
    return rows


def begin_as_copy(
    conversation: Conversation,
    entries: Sequence[Entry],
    *,
    actors: Sequence[int | None],
    origin: Conversation | None,
) -> None:
    """Store the first events of a conversation, as of when they happened in `origin`, if that is still
    there. Nobody who follows events is told: what they led to then they do not lead to once more."""
    rows = []
    for seq, (entry, actor_id) in enumerate(zip(entries, actors, strict=True), 1):
        row = _row(conversation.pk, seq, entry, at=datetime.fromtimestamp(entry.at, UTC))
        row.conversation, row.actor_id, row.processed_at = conversation, actor_id, row.created_at
        rows.append(row)
    for first in range(0, len(rows), COPIED_AT_ONCE):
        logsql.insert(rows[first : first + COPIED_AT_ONCE])
    for row in rows:
        if isinstance(row.value, MessageEdited):
            index_edited(row, row.value.event_id)
        else:
            index_event(row)
    here = standing(History(entries_after(conversation.pk, 0)))
    said = [entry for entry in entries if isinstance(entry.event, UserMessage | AgentMessage)]
    conversation.origin, conversation.last_seq = origin, len(rows)
    conversation.message_count, conversation.stop_reason = len(said), here.stop_reason
    conversation.front_end_seq = here.front_end_seq
    # As where it was said: whose words the agent hears narrows what it may do alone.
    conversation.others_wrote = any(
        row.actor_id not in {None, conversation.owner_id} for row in rows
    )
    conversation.save(
        update_fields=[
            "origin",
            "last_seq",
            "message_count",
            "stop_reason",
            "front_end_seq",
            "others_wrote",
        ]
    )


_DRAWN_WITH_OTHERS = ("session.updated", "x.content_set_aside")
"""Types whose events lose words without what they are about being taken out."""


def redact(
    conversation: Conversation, subject: str, *, actor: User, titles: Collection[str] = ()
) -> tuple[Event, list[Place]]:
    """Take out of the log what events about `subject` say, what was thought or judged with it, what
    summaries that it went into say, and each of these `titles`; have what apps copied of it go as well
    (`conversations.forgetting`), and append that this was done. What services said in errors since goes too.
    Gives the event that says so, and where logs of other conversations say the same.

    The one change of what is stored: numbers, ids and order stay. Needs a transaction that holds the row of a
    conversation which no run has.
    """
    log = Event.objects.filter(conversation=conversation)
    gone = redactions.said_with(log, subject)
    rows = {row.pk: row for row in gone}
    rows |= {row.pk: row for row in redactions.told_of(log, gone, titles)}
    before = tuple(row.entry() for row in rows.values())
    # One event each, so that everything is drawn anew in its place.
    subjects = dict.fromkeys([subject, *(row.subject for row in gone)])
    for row in rows.values():
        after = dump(redacted(row.value))
        if after != row.payload and row.type not in _DRAWN_WITH_OTHERS:
            subjects[row.subject] = None
        row.payload = after
        row.save(update_fields=["payload"])
    entries: list[Entry] = [Entry.of(ContentRedacted(event_id=each)) for each in subjects]
    if conversation.title and conversation.title in titles:
        entries.append(Entry.of(SessionUpdated(title="")))
    removed = Removed(conversation, subject, before, frozenset(titles))
    # Asked first, while there are the copies by which the others are known; and again, under what is locked
    # then, since more may have been made of them in between.
    places = list(elsewhere(removed))
    forget(removed)
    places += elsewhere(removed)
    return append(conversation.pk, entries, actor=actor)[0], places


@dataclass(frozen=True, slots=True)
class Asked:
    """What one run wants to append: plain events, each of them `plain` by its class."""

    run: Run
    entries: Sequence[Entry]
    expected_seq: int | None = None
    """As for `append`."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Where the entries stand now, one behind the other, and since when."""

    first_seq: int
    at: datetime

    def of(self, entries: Sequence[Entry]) -> list[Entry]:
        at = self.at.timestamp()
        return [
            Entry(entry.uid, entry.event, seq, at)
            for seq, entry in enumerate(entries, self.first_seq)
        ]


def append_together(asked: Sequence[Asked]) -> list[Stored | LeaseLost | None]:
    """`append` for runs of different conversations at once, in one transaction.

    Each is answered for itself: a run that no longer holds its conversation gets its `LeaseLost` and
    stores nothing. None: nothing was stored, because somebody else holds the conversation at this
    moment, or it is gone, or its log has grown; `append` waits for the one and tells of the others.
    """
    with transaction.atomic():
        held = logsql.hold_free([each.run.conversation_id for each in asked])
        running = logsql.running([each.run.pk for each in asked])
        now = timezone.now()
        news: list[logsql.NewEvent] = []
        counts: list[tuple[int, int]] = []
        nudges: list[tuple[str, int]] = []
        answers: list[Stored | LeaseLost | None] = []
        for each in asked:
            pk = each.run.conversation_id
            # Taken out: of two runs of one conversation the second one comes by itself.
            found = held.pop(pk, None)
            if found is None:
                answers.append(None)
            elif each.run.pk not in running:
                answers.append(_lease_lost(each.run))
            elif each.expected_seq not in {None, found[1]}:
                answers.append(None)
            else:
                uid, last_seq = found
                news += [
                    _new(pk, seq, entry, each.run.pk)
                    for seq, entry in enumerate(each.entries, last_seq + 1)
                ]
                counts.append((pk, len(each.entries)))
                nudges.append((uid, last_seq + len(each.entries)))
                answers.append(Stored(last_seq + 1, now))
        if news:
            logsql.insert_events(news, at=now)
            logsql.lengthen(counts, at=now)
            transaction.on_commit(partial(_nudge_all, nudges))
    return answers


def entries_after(conversation_id: int, seq: int) -> list[Entry]:
    """The log behind `seq`, as the harness reads it."""
    return [
        Entry(uid, load(payload), place, at.timestamp())
        for uid, place, payload, at in _AFTER.all(conversation=conversation_id, seq=seq)
    ]


def _nudge(conversation_uid: str, seq: int, interrupts: bool) -> None:
    hub.nudge(conversation_uid, seq)
    if interrupts:
        hub.interrupt(conversation_uid)


def _nudge_all(nudges: Sequence[tuple[str, int]]) -> None:
    for conversation_uid, seq in nudges:
        hub.nudge(conversation_uid, seq)


def _lease_lost(run: Run) -> LeaseLost:
    return LeaseLost(f"run {run.pk} no longer holds conversation {run.conversation_id}")


def _row(conversation_id: int, seq: int, entry: Entry, *, at: datetime) -> Event:
    event = entry.event
    return Event(
        conversation_id=conversation_id,
        seq=seq,
        uid=entry.uid,
        type=event.type,
        subject=subject_of(entry.uid, event),
        payload=dump(event),
        processed_at=None if event.waits else at,
        created_at=at,
    )


def _new(conversation_id: int, seq: int, entry: Entry, run_id: int) -> logsql.NewEvent:
    event = entry.event
    return logsql.NewEvent(
        conversation_id,
        seq,
        entry.uid,
        event.type,
        subject_of(entry.uid, event),
        run_id,
        dump_text(event),
    )


def _project(
    conversation: Conversation, row: Event, event: EventValue, stands: Standing | None
) -> None:
    """Carry one event over to the conversation's own columns and to the tables that follow it."""
    if event.owes_run:
        conversation.owes_run = True
    projections.before(conversation, row, event)
    match event:
        case UserMessage():
            conversation.message_count += 1
            conversation.queued_count += 1
            index_event(row)
            _keep_front_end(conversation, row, event)
            _note_author(conversation, row)
            begins = conversation.parent_id is not None and conversation.last_seq <= 1
            if event.by_agent and not begins:  # what begins has it of the one that begins it
                _note_others_beside(conversation)
        case SubagentEnded():
            _note_others_beside(conversation)
        case UserDefineOutcome():
            conversation.queued_count += 1
            _note_author(conversation, row)
        case UserCustomToolResult():
            _keep_front_end(conversation, row, event)
            _note_author(conversation, row)
        case MessageEdited():
            index_edited(row, event.event_id)
        case UserInterrupt():
            delays.cancel(conversation)
        case WakeRequested():
            delays.ask(conversation, row, event)
        case AgentMessage():
            conversation.message_count += 1
            logsql.drop_partial(row.uid)
            index_event(row)
        case InputTaken():
            messages = _mark_processed(conversation, event.event_ids)
            conversation.queued_count = max(0, conversation.queued_count - messages)
            if conversation.has_askers:
                note_asker(conversation, row, event)
        case MessageWithdrawn():
            _mark_processed(conversation, (event.event_id,))
            conversation.queued_count = max(0, conversation.queued_count - 1)
        case ContentSetAside() if conversation.queued_count or _something_wakes(conversation):
            conversation.owes_run = True  # nothing holds back what waits any more
        case AgentThreadContextCompacted(provider=provider) if provider:
            pass  # the service's own answers nobody
        case AgentThreadContextCompacted() | CompactionSkipped():
            _ASKED_TO_COMPACT.run(conversation=conversation.pk, now=timezone.now())
        case SessionStatusRunning():
            _no_longer_put_off(conversation)
            conversation.status = Conversation.Status.RUNNING
        case SessionStatusIdle():
            _no_longer_put_off(conversation)
            conversation.status = Conversation.Status.IDLE
            conversation.stop_reason = _stop_reason(conversation, event.stop_reason)
            if conversation.stop_reason != WAITS_FOR_WORKER:
                conversation.news_seq = row.seq
            conversation.owes_run = _still_owes(conversation, event)
            _mark_handled(conversation, event, before=row.seq)
        case SessionStatusRescheduled():
            conversation.status = Conversation.Status.RESCHEDULING
            conversation.owes_run = Event.objects.waiting_interrupts(conversation.pk).exists()
            delays.put_off(conversation, row, event)
        case SessionError():
            transaction.on_commit(partial(count_error, event))
        case SessionStatusTerminated():
            conversation.status = Conversation.Status.TERMINATED
            conversation.news_seq = row.seq
        case Rewound():
            _stand_elsewhere(conversation, row, stands)
            if conversation.has_askers:
                keep_asker(conversation, row.actor_id)
            if event.checkpoint:
                _owe_files(conversation, row.seq)
        case RetryRequested(resumed=False) if conversation.has_askers:
            keep_asker(conversation, row.actor_id)
        case FilesReverted():
            _owe_files(conversation, row.seq)
        case FilesRestored():
            _owe_files(conversation, None)
        case SessionUpdated():
            if event.title is not None:
                conversation.title = event.title[:200]
                index_event(row)
            if event.features or event.overrides:
                conversation.stored_features = conversation.features_with(event.features)
                conversation.overrides = {**conversation.overrides, **event.overrides}
                conversation.save(update_fields=["stored_features", "overrides"])
        case CompactionRequested() | AppEvent() if instructs(event):
            _note_author(conversation, row)
        case _:
            pass
    projections.after(conversation, row, event)


def _no_longer_put_off(conversation: Conversation) -> None:
    """A retry waits only while its conversation says so: both are written together, here alone."""
    if conversation.status == Conversation.Status.RESCHEDULING:
        delays.retried(conversation)


def _stand_elsewhere(conversation: Conversation, row: Event, stands: Standing | None) -> None:
    """Another branch counts from here on. What waited on the one that is left does not wait any more."""
    waiting = Event.objects.filter(conversation=conversation.pk, processed_at=None)
    waiting.filter(seq__lt=row.seq).update(processed_at=row.created_at)
    delays.cancel(conversation)
    here = stands or standing(History(entries_after(conversation.pk, 0)))
    conversation.status = Conversation.Status.IDLE
    conversation.stop_reason = here.stop_reason
    conversation.context_tokens = here.context_tokens
    conversation.owes_run = here.owes_run
    conversation.queued_count = 0
    conversation.rewound_seq = row.seq
    conversation.front_end_seq = here.front_end_seq
    conversation.save(update_fields=["rewound_seq", "front_end_seq"])


def _owe_files(conversation: Conversation, seq: int | None) -> None:
    """Files are to be brought back, or that is done."""
    conversation.files_due_seq = seq
    conversation.save(update_fields=["files_due_seq"])


def _stop_reason(conversation: Conversation, reason: StopReason) -> str:
    """What the conversation's row says of a rest: whether people are waited for, or only workers."""
    if isinstance(reason, RequiresAction):
        elsewhere = projections.carried_out_elsewhere(conversation)
        if elsewhere and elsewhere.issuperset(reason.event_ids):
            return WAITS_FOR_WORKER
    return reason.type


def _keep_front_end(
    conversation: Conversation, row: Event, event: UserMessage | UserCustomToolResult
) -> None:
    if event.front_end is not None:
        conversation.front_end_seq = row.seq
        conversation.save(update_fields=["front_end_seq"])


def _note_author(conversation: Conversation, row: Event) -> None:
    if row.actor_id not in {None, conversation.owner_id} and not conversation.others_wrote:
        conversation.others_wrote = True
        conversation.save(update_fields=["others_wrote"])


def _note_others_beside(conversation: Conversation) -> None:
    """An agent next to it has said something: what that one was told by others goes with its words."""
    if not conversation.others_wrote and _BESIDE.exists(
        conversation=conversation.pk, parent=conversation.parent_id or 0
    ):
        conversation.others_wrote = True
        conversation.save(update_fields=["others_wrote"])


def _still_owes(conversation: Conversation, rest: SessionStatusIdle) -> bool:
    """Whether something that came right before this rest is left for another run."""
    match rest.stop_reason:
        case EndTurn() if _is_held(conversation):
            return False
        case EndTurn():
            return conversation.queued_count > 0 or _something_wakes(conversation)
        case _:
            # Nothing can have come right before a rest for a person, which is stored only if the run
            # has read all there is.
            return False


def _is_held(conversation: Conversation) -> bool:
    """Whether the person who stopped the agent held its queue, and nobody has said anything since."""
    return conversation.queued_count > 0 and _LAST_WORD.all(conversation=conversation.pk) == [
        ("x.queue_held",)
    ]


def _something_wakes(conversation: Conversation) -> bool:
    """Whether a wake has come due, a background command has ended or a summary was asked for, and no run has
    seen to it."""
    return _WAKING.exists(conversation=conversation.pk)


def _mark_processed(conversation: Conversation, uids: Sequence[str]) -> int:
    """How many messages and outcomes among them no longer wait from now on."""
    types = logsql.mark_processed(conversation.pk, uids, at=timezone.now())
    return types.count("user.message") + types.count("user.define_outcome")


def _mark_handled(conversation: Conversation, rest: SessionStatusIdle, *, before: int) -> None:
    """At a rest every answer to a call that came before it has been heeded, and every interrupt as
    well, unless the turn only waits for a person and is still to be ended."""
    answers, interrupts = "user.tool_confirmation", "user.interrupt"
    waits = isinstance(rest.stop_reason, RequiresAction)
    _HANDLED.run(
        conversation=conversation.pk,
        one=answers,
        other=answers if waits else interrupts,
        before=before,
        now=timezone.now(),
    )
