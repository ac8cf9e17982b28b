"""Checkpoints of a conversation's files: made before a turn changes them, and before any are brought back.

For a place in the log the first checkpoint behind it tells how the files were; where there is none, they
have not changed since. Bringing files back is owed from the event that asks for it (`files_due_seq`) until
one tells what came of it, so a process that dies in between loses nothing. Who may ask is `actions`'.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from harness.errors import AgentError, Conflict
from harness.events import Event as EventValue
from harness.events import Rewound, UserMessage
from harness.history import Entry
from jobs.dispatch import dispatch
from tools_app.leases import Lease, leased
from tools_app.provenance import MARGIN, NOTHING, WRITTEN
from tools_app.snapshots import (
    Damaged,
    Found,
    Limits,
    NotKept,
    Snapshot,
    SourceOf,
    Store,
)
from tools_app.workspace import entry_of, workspace_for

from .branches import counting
from .fileevents import FilesNotKept, FilesRestored, FilesReverted, Forked
from .log import append
from .models import Checkpoint, Conversation, Event
from .provenance import TableProvenance
from .sandboxing import end_shells

logger = logging.getLogger(__name__)

RESTORE = "conversations.restore_files"
MB = 1024 * 1024
AT_A_TIME = 20
"""Conversations whose files one sweep brings back; the next one goes on."""
PATIENCE = 120.0
"""Seconds that whoever needs the files waits for another one's change of them."""


def keep_before_turn(conversation_id: int, turn: str, seq: int) -> Sequence[EventValue]:
    """Keep the files, which the turn is about to change for the first time; what is to be told of it."""
    known = Checkpoint.objects.filter(conversation=conversation_id)
    if known.filter(turn=turn).exists():
        return ()
    before = known.order_by("-seq").first()
    conversation = Conversation.objects.only("uid").get(pk=conversation_id)
    made, refused = _kept(conversation, seq, turn=turn)
    if refused is None or (before is not None and before.problem == made.problem):
        return ()
    return (FilesNotKept(reason=made.problem, files=made.files, size=made.size),)


def before(conversation_id: int, seq: int) -> Checkpoint | None:
    """The last one before an event; of one within a turn that changed files, how they were before it."""
    made = Checkpoint.objects.filter(conversation=conversation_id, seq__lt=seq)
    return made.order_by("-seq").first()


def files_follow(conversation: Conversation) -> bool:
    """Whether files go back with the dialogue at all: they are here, and this server keeps some."""
    return not conversation.environment.has_workers and bool(
        settings.AGENTSITE_CHECKPOINT_MEGABYTES
    )


def holding(conversation_id: int, place: int) -> Checkpoint | None:
    """How the files were at that place of the log; None: as they are now."""
    behind = Checkpoint.objects.filter(conversation=conversation_id, seq__gte=place)
    return behind.order_by("seq").first()


@dataclass(slots=True)
class Carried:
    """Files that came along into a new workspace, or why none did."""

    files: int = 0
    problem: str = ""
    marks: list[tuple[str, str, int]] = field(default_factory=list)

    def note(self, conversation: Conversation) -> None:
        """Have the conversation know of them, and that they tell of no place before its last one."""
        here = {"conversation": conversation, "seq": conversation.last_seq - 1}
        Checkpoint.objects.create(**here, problem="forked")
        provenance = TableProvenance(conversation.pk)
        for path, source, inode in self.marks:
            provenance.mark_file(path, source, inode)
        told = Forked(files=self.files, problem=self.problem)
        append(conversation.pk, [Entry.of(told)])

    def mark(self, path: str, source: str, inode: int) -> None:
        self.marks.append((path, source, inode))


def carry_files(origin: Conversation, place: int, uid: str) -> Carried:
    """Copy the files as they were at that place of a conversation into the empty workspace of the one that
    is to have this id."""
    if origin.environment.has_workers:
        return Carried(problem="elsewhere")
    carried, found = Carried(), holding(origin.pk, place)
    there, here = workspace_for(origin.uid), workspace_for(uid)
    try:
        if found is None:
            with leased(there):
                snapshot = snapshot_now(origin).id
        elif not found.snapshot:
            return Carried(problem=found.problem)
        else:
            snapshot = found.snapshot
        store = Store(here, of=there)
        carried.files = sum(item.kind == "file" for item in store.items(snapshot))
        with leased(here) as lease:
            store.bring_back(snapshot, now="", lease=lease, first=carried.mark)
    except NotKept as problem:
        return Carried(problem=problem.reason)
    except (AgentError, Damaged, OSError) as problem:
        logger.warning("files of conversation %s: %s", origin.uid, problem)
        return Carried(problem="failed", marks=carried.marks)
    return carried


def ask_for_files(conversation_id: int) -> None:
    """Have what is owed brought back, after the current transaction."""
    dispatch(RESTORE, conversation_id=conversation_id)


def bring_back_due(conversation_id: int) -> None:
    """Bring files back if that is owed, in a thread that may take long. Whoever comes second waits; of
    several nobody does it twice. Raises `Conflict` where others change the files for too long."""
    end = time.monotonic() + PATIENCE
    while _is_due(conversation_id):
        try:
            _bring_back(conversation_id)
        except Conflict:
            if time.monotonic() > end:
                raise


def bring_back_left() -> None:
    """What processes that died still owed."""
    owing = Conversation.objects.filter(files_due_seq__isnull=False).values_list("pk", flat=True)
    for conversation_id in list(owing[:AT_A_TIME]):
        try:
            bring_back_due(conversation_id)
        except Exception:
            logger.exception("the files of conversation %s were not brought back", conversation_id)


def _is_due(conversation_id: int) -> bool:
    due = Conversation.objects.filter(pk=conversation_id, files_due_seq__isnull=False)
    return due.exists()


def _bring_back(conversation_id: int) -> None:
    conversation = Conversation.objects.get(pk=conversation_id)
    root = workspace_for(conversation.uid)
    end_shells([conversation.uid])
    with leased(root) as lease:
        conversation.refresh_from_db(fields=["files_due_seq"])
        due = conversation.files_due_seq
        if due is None:
            return
        told = _restored(conversation, due, lease)
    with transaction.atomic():
        held = Conversation.objects.select_for_update(no_key=True).get(pk=conversation_id)
        if held.files_due_seq == due:
            append(conversation_id, [Entry.of(told)])


def _restored(conversation: Conversation, due: int, lease: Lease) -> FilesRestored:
    """Carry out what event `due` asks for; what came of it."""
    event = Event.objects.get(conversation=conversation, seq=due).value
    if not isinstance(event, Rewound | FilesReverted):
        raise TypeError(f"{event.type} asks for no files")
    only = event.paths if isinstance(event, FilesReverted) and event.paths else None
    own = Checkpoint.objects.filter(conversation=conversation)
    wanted = own.filter(uid=event.checkpoint).first()
    spare = wanted.snapshot if wanted is not None else ""
    # The same one where an earlier attempt was cut short: by now the files are neither.
    kept = own.filter(seq=due - 1).first()
    now = ""
    told = partial(FilesRestored, checkpoint=event.checkpoint)
    if wanted is None or not spare:
        return told(problem=wanted.problem if wanted is not None else "dropped")
    try:
        if kept is None:
            kept, _refused = _kept(conversation, due - 1, lease=lease, spare=spare)
            now = kept.snapshot
        elif kept.snapshot:
            now = snapshot_now(conversation, spare).id
        told = partial(told, kept=kept.uid)
        if not kept.snapshot:
            return told(problem=kept.problem)  # it could not be undone
        marks = TableProvenance(conversation.pk)
        changes = Store(workspace_for(conversation.uid)).bring_back(
            spare,
            now=now,
            lease=lease,
            only=only,
            stays=_sent_along(conversation),
            first=marks.mark_file,
        )
    except Conflict:
        raise
    except NotKept as problem:
        return told(problem=problem.reason)
    except (AgentError, Damaged, OSError) as problem:
        logger.warning("files of conversation %s: %s", conversation.uid, problem)
        return told(problem="failed")
    return told(written=changes.written, removed=changes.removed)


def _sent_along(conversation: Conversation) -> set[str]:
    """Files that came with messages that count: they stay with these."""
    messages = counting(conversation).filter(type="user.message").exclude(payload__files=[])
    values = (row.value for row in messages)
    return {file.path for value in values if isinstance(value, UserMessage) for file in value.files}


def _kept(
    conversation: Conversation,
    seq: int,
    *,
    turn: str = "",
    lease: Lease | None = None,
    spare: str = "",
) -> tuple[Checkpoint, NotKept | None]:
    """A new checkpoint, or one that says why there is none; `spare` is a snapshot that must not make
    room for it."""
    told: dict[str, Any] = {"turn": turn}
    refused: NotKept | None = None
    try:
        with nullcontext() if lease else leased(workspace_for(conversation.uid)):
            snapshot = snapshot_now(conversation, spare)
    except NotKept as problem:
        refused = problem
    except (AgentError, OSError) as problem:
        logger.warning("files of conversation %s are not kept: %s", conversation.uid, problem)
        refused = NotKept("busy", str(problem))
    else:
        told |= {"snapshot": snapshot.id, "files": snapshot.files, "size": snapshot.size}
    if refused is not None:
        told |= {"problem": refused.reason, "files": refused.files, "size": refused.size}
    made, _new = Checkpoint.objects.get_or_create(conversation=conversation, seq=seq, defaults=told)
    return made, refused


def snapshot_now(
    conversation: Conversation, spare: str = "", *, read_since: float | None = None
) -> Snapshot:
    """Keep the files as they are. What changed after `read_since`, where that is given, is foreign there:
    strangers' words had come in. The caller holds the workspace's lease. Raises `NotKept`."""
    limits = Limits(
        settings.AGENTSITE_CHECKPOINT_FILES, settings.AGENTSITE_CHECKPOINT_MEGABYTES * MB
    )
    if not limits.size:
        raise NotKept("off", "This server keeps no checkpoints.")
    store = Store(workspace_for(conversation.uid))
    snapshot = store.keep(limits, _source_of(conversation.pk, read_since))
    if store.size() > settings.AGENTSITE_CHECKPOINTS_MEGABYTES * MB:
        _make_room(conversation, store, {snapshot.id, spare})
    return snapshot


def _make_room(conversation: Conversation, store: Store, spared: set[str]) -> None:
    """Let go of the older quarter of what is kept."""
    own = Checkpoint.objects.filter(conversation=conversation).exclude(snapshot="")
    rows = list(own.exclude(snapshot__in=spared).order_by("seq").values_list("pk", "snapshot"))
    some = (len(rows) + 3) // 4
    gone = [pk for pk, _snapshot in rows[:some]]
    Checkpoint.objects.filter(pk__in=gone).update(snapshot="", problem="dropped")
    store.sweep({snapshot for _pk, snapshot in rows[some:]} | (spared - {""}))


def _source_of(conversation_id: int | None, read_since: float | None) -> SourceOf:
    foreign = TableProvenance(conversation_id).foreign() if conversation_id is not None else NOTHING

    def source_of(found: Found) -> str:
        if not foreign and read_since is None:
            return ""
        entry = entry_of(found.path, found.status)
        read = read_since is not None and entry.changed >= read_since - MARGIN
        return foreign.source_of(entry) or (WRITTEN if read else "")

    return source_of
