"""The files of a subagent: a copy of its parent's when it begins, and what it changed when that comes back.

Nothing is overwritten silently: a file comes over only where the other side still has it as it was when the
copy was made. Whether it comes back at all is the parent's to say (`Subagent.files`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from conversations import logsql
from conversations.checkpoints import Carried, carry_files, keep_before_turn, snapshot_now
from conversations.judging import history_of
from conversations.models import Checkpoint, Conversation
from conversations.provenance import TableProvenance
from harness.errors import AgentError, Conflict
from harness.history import strangers_in
from tools_app.diffs import diff_of
from tools_app.leases import leased
from tools_app.provenance import Foreign
from tools_app.snapshots import Damaged, Item, NotKept, Store
from tools_app.workspace import Workspace, workspace_for

from .models import Subagent

logger = logging.getLogger(__name__)

DIFF_CHARACTERS = 8_000
"""Of all diffs together that a model is shown."""
DIFF_FILES = 30
DIFF_BYTES = 200_000
"""Longer files are named, not compared."""
NAMED = 50
"""Files that an answer names."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file or link that is not as it was."""

    path: str
    before: Item | None
    after: Item | None


@dataclass(slots=True)
class Brought:
    """What came of bringing changes over."""

    taken: list[str] = field(default_factory=list)
    kept_back: list[str] = field(default_factory=list)
    """Changed on both sides: the other side has its own still."""
    problem: str = ""
    """Why nothing could be brought, in words."""
    untrusted_by: str = ""
    """What strangers may have had a part in these names, in words."""

    def words(self) -> str:
        parts = []
        if self.taken:
            parts.append(f"Files brought into this workspace: {named(self.taken)}.")
        if self.kept_back:
            parts.append(
                "Not brought, because they changed here too (yours are as they were): "
                f"{named(self.kept_back)}."
            )
        return " ".join([*parts, *([self.problem] if self.problem else [])])


@dataclass(slots=True)
class Copied:
    """A copy of the parent's files for a conversation that is to begin, or why there is none."""

    carried: Carried
    base: str = ""

    def note(self, child: Conversation, place: int) -> None:
        """Have the conversation know what of them others wrote, and keep how they were."""
        marks = TableProvenance(child.pk)
        for path, source, inode in self.carried.marks:
            marks.mark_file(path, source, inode)
        if self.base:
            # It begins, so there is none yet; one that is asked again may have it (`keep_base`).
            logsql.insert([Checkpoint(conversation=child, seq=place, snapshot=self.base)])


NOTHING = Copied(Carried())
"""For one that has no tools."""


def keep_base(child: Conversation, place: int, base: str) -> None:
    if base:
        given = {"snapshot": base}
        Checkpoint.objects.get_or_create(conversation=child, seq=place, defaults=given)


def copy_down(parent: Conversation, uid: str) -> Copied:
    """Copy the parent's files into the workspace of the conversation that is to have this id. It may take
    a while: no row is held."""
    copied = Copied(carry_files(parent, parent.last_seq, uid))
    if not copied.carried.problem:
        with leased(workspace_for(uid)):
            copied.base = snapshot_now(Conversation(uid=uid)).id
    return copied


def refresh(parent: Conversation, child: Conversation, base: str) -> str:
    """Bring what changed in the parent's files to the child that is asked again; the new beginning, empty
    where none could be kept."""
    if not base:
        return ""
    try:
        _bring(parent, child, base)
        with leased(workspace_for(child.uid)):
            return snapshot_now(child).id
    except (NotKept, Damaged, AgentError, OSError) as problem:
        logger.warning("files for conversation %s: %s", child.uid, problem)
        return ""


def changes_of(row: Subagent) -> list[Change]:
    """What the child changed since it began; nothing where that is not known."""
    if row.child is None or not row.base:
        return []
    try:
        store = Store(workspace_for(row.child.uid))
        with leased(workspace_for(row.child.uid)):
            now = snapshot_now(row.child, row.base, read_since=_read_since(row.child)).id
        return _between(store.items(row.base), store.items(now))
    except (NotKept, Damaged, AgentError, OSError) as problem:
        logger.warning("files of conversation %s: %s", row.child.uid, problem)
        return []


def bring_up(row: Subagent) -> Brought:
    """Bring what the child changed into its parent's workspace. Done twice it changes nothing more. The
    parent's files are kept before, so that they can go back with its dialogue."""
    if row.child is None or not row.base:
        return Brought(problem="How its files were when it began is not known any more.")
    if not changes_of(row):
        return Brought()
    try:
        turn = history_of(row.parent).turn.uid
        keep_before_turn(row.parent_id, turn or row.call_uid, row.parent.last_seq)
        return _bring(row.child, row.parent, row.base)
    except Conflict:
        raise
    except NotKept as problem:
        return Brought(problem=f"Its files could not be brought here: {problem.message}")
    except (Damaged, AgentError, OSError) as problem:
        logger.warning("files of conversation %s: %s", row.child.uid, problem)
        return Brought(problem="Its files could not be brought here.")


def _bring(source: Conversation, target: Conversation, base: str) -> Brought:
    """The changes since `base`, which is kept in the store of whichever of the two is the child."""
    here, there = workspace_for(target.uid), workspace_for(source.uid)
    upwards = source.parent_id == target.pk
    began = Store(there if upwards else here).items(base)
    with leased(there):
        read_since = _read_since(source) if upwards else None
        source_now = snapshot_now(source, base, read_since=read_since).id
    wanted = Store(there).items(source_now)
    marks, known = TableProvenance(target.pk), TableProvenance(source.pk).foreign()
    folders = known.folders_in(Workspace(there))
    brought = Brought()
    with leased(here) as lease:
        target_now = snapshot_now(target, base).id
        store = Store(here, of=there)
        theirs = _files(Store(here).items(target_now))
        for change in _between(began, wanted):
            mine = theirs.get(change.path)
            if _same(mine, change.after):
                continue
            side = brought.taken if _same(mine, change.before) else brought.kept_back
            side.append(change.path)
            named_by = known.about_path(change.path, source_of(change, known), folders)
            brought.untrusted_by = brought.untrusted_by or named_by
        if brought.taken:
            coming = _files(wanted)
            store.bring_back(
                source_now, now="", lease=lease, only=set(brought.taken), first=marks.mark_file
            )
            for path in brought.taken:
                if path not in coming:
                    Workspace(here).remove(path, lease=lease)
    return brought


def _read_since(child: Conversation) -> float | None:
    """When strangers' words first came in there, if ever: what a person said to it since, by which it wrote
    as its own, was not said to its parent."""
    history = history_of(child)
    if history.tainted_beside:
        # Also on a branch that was left since: what it wrote there may have stayed.
        log = (row.entry() for row in child.events.order_by("seq"))
        return next((each.at for each in log if strangers_in(each)), 0.0)
    if not history.ever_tainted_by:
        return None
    return next((each.at for each in history.entries if each.uid == history.first_taint), 0.0)


def source_of(change: Change, known: Foreign) -> str:
    """Where it comes from that strangers may have written: what is gone is known by its path alone, what is
    there also by when it was changed, and under new names."""
    return known.paths.get(change.path) or (change.after.source if change.after else "")


def diff_text(row: Subagent, changes: Iterable[Change]) -> str:
    """What changed, as a model and a person read it; cut where it is long."""
    if row.child is None:
        return ""
    store = Store(workspace_for(row.child.uid))
    parts: list[str] = []
    room = DIFF_CHARACTERS
    for number, change in enumerate(changes):
        if number == DIFF_FILES or room <= 0:
            parts.append("… more files changed.")
            break
        text = _diff(store, change)[:room]
        room -= len(text)
        parts.append(text)
    return "\n".join(parts)


def _diff(store: Store, change: Change) -> str:
    sizes = [item.size for item in (change.before, change.after) if item is not None]
    kinds = {item.kind for item in (change.before, change.after) if item is not None}
    heading = f"{_verb(change)} {change.path}"
    if kinds != {"file"} or max(sizes) > DIFF_BYTES:
        return heading
    texts = [_text(store, item) for item in (change.before, change.after)]
    if any(text is None for text in texts):
        return f"{heading} (not text)"
    before, after = (text or "" for text in texts)
    shown = diff_of(change.path, before, after, created=change.before is None)
    return f"{heading} (+{shown.added} −{shown.removed})\n{shown.diff}"


def _text(store: Store, item: Item | None) -> str | None:
    if item is None:
        return ""
    try:
        return store.content(item).decode()
    except (UnicodeDecodeError, OSError):
        return None


def _verb(change: Change) -> str:
    if change.before is None:
        return "new:"
    return "removed:" if change.after is None else "changed:"


def named(paths: Iterable[str]) -> str:
    listed = list(paths)
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more


def _between(before: Iterable[Item], after: Iterable[Item]) -> list[Change]:
    was, now = _files(before), _files(after)
    return [
        Change(path, was.get(path), now.get(path))
        for path in sorted(was.keys() | now.keys())
        if not _same(was.get(path), now.get(path))
    ]


def _files(items: Iterable[Item]) -> Mapping[str, Item]:
    return {item.path: item for item in items if item.kind != "folder"}


def _same(one: Item | None, other: Item | None) -> bool:
    if one is None or other is None:
        return one is other
    return (one.kind, one.content, one.executable) == (other.kind, other.content, other.executable)
