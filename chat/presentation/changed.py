"""Which files the agent's own tools changed in a conversation, and how, from the diffs its log keeps.

What commands change leaves no diff and is not in it; what became of a file since, the workspace knows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from conversations.branches import counting
from conversations.models import Conversation, Event
from harness.errors import AgentError
from harness.events import AgentToolResult, DiffDisplay
from reading.unseen import visible
from tools_app.workspace import Workspace

from .content import Moment
from .proposals import Diff, diff_from

CHANGES_READ = 1_000
"""The newest changes of a conversation that are looked at."""
CHANGES_SHOWN = 20
"""Of one file, the newest."""


@dataclass(slots=True)
class ChangedFile:
    path: str
    added: int = 0
    removed: int = 0
    """Over all changes together: a line that was changed twice counts twice."""
    created: bool = False
    is_there: bool = True

    @property
    def shown(self) -> str:
        return visible(self.path)


@dataclass(frozen=True, slots=True)
class Step:
    uid: str
    at: Moment
    diff: Diff


def changed_files(conversation: Conversation, workspace: Workspace) -> list[ChangedFile]:
    """The file that was changed last comes first."""
    files: dict[str, ChangedFile] = {}
    told = _changes(conversation).values_list(
        *(f"payload__display__{name}" for name in ("path", "added", "removed", "created"))
    )[:CHANGES_READ]
    for path, added, removed, created in told:
        file = files.setdefault(path, ChangedFile(path))
        file.added += added
        file.removed += removed
        # The oldest comes last and says whether it was there before.
        file.created = bool(created)
    for file in files.values():
        file.is_there = _is_there(workspace, file.path)
    return [file for file in files.values() if file.added or file.removed or file.created]


def changes_of(conversation: Conversation, path: str) -> tuple[list[Step], bool]:
    """What was changed of one file, the first change first, and whether there was more before."""
    found = _changes(conversation).filter(payload__display__path=path)
    rows = list(found[: CHANGES_SHOWN + 1])
    steps = []
    for row in reversed(rows[:CHANGES_SHOWN]):
        value = row.value
        if isinstance(value, AgentToolResult) and isinstance(value.display, DiffDisplay):
            steps.append(Step(row.uid, Moment.of(row.created_at), diff_from(value.display)))
    return steps, len(rows) > CHANGES_SHOWN


def missing_files(conversation: Conversation, workspace: Workspace) -> list[str]:
    """The paths, as people are shown them, of files that the log speaks of and that are not there: brought
    along with messages, or written by the agent's own tools. The newest first, and none twice."""
    sent = counting(conversation).filter(type="user.message").exclude(payload__files=[])
    brought = sent.order_by("-seq").values_list("payload__files", flat=True)[:CHANGES_READ]
    paths = [file["path"] for files in brought for file in files or ()]
    written = _changes(conversation).values_list("payload__display__path", flat=True)
    paths += written[:CHANGES_READ]
    return [visible(path) for path in dict.fromkeys(paths) if not _is_there(workspace, path)]


@dataclass(frozen=True, slots=True)
class Undoing:
    """Events that files can be put back to before: the first change, and the last time that was done.
    Empty: there is none."""

    first: str = ""
    last: str = ""


def undoing(conversation: Conversation) -> Undoing:
    first = _changes(conversation).order_by("seq").values_list("uid", flat=True).first()
    log = Event.objects.filter(conversation=conversation)
    last = log.filter(type="x.files_restored", payload__problem="").order_by("-seq").first()
    after = log.filter(type="agent.tool_result", seq__gt=last.seq) if last is not None else log
    undoable = last is not None and not after.exists()
    return Undoing(first or "", last.uid if last is not None and undoable else "")


def _changes(conversation: Conversation) -> QuerySet[Event, Any]:
    """On the branch that is chosen, as the transcript is."""
    told = counting(conversation).filter(type="agent.tool_result", payload__display__type="diff")
    return told.order_by("-seq")


def _is_there(workspace: Workspace, path: str) -> bool:
    try:
        return workspace.stat(path).kind == "file"
    except AgentError:
        return False
