"""Ends what a call asked for: the child's rest is noted with its event, and the parent told of it once.

That the child has ended is in the transaction of its rest; the answer is stored in one of the parent's,
together with the row's `told_at`, so that a process that dies in between leaves only work for the sweep.
"""

from __future__ import annotations

from django.utils import timezone

from conversations.actions.children import answer_of
from conversations.judging import history_of
from conversations.log import append, entries_after
from conversations.models import Conversation
from conversations.opencalls import open_call
from conversations.provenance import TableProvenance
from harness.content import as_blocks, text_of
from harness.events import AgentToolResult, BackgroundFinished, ResultOutcome, SubagentEnded
from harness.events import Event as EventValue
from harness.history import Entry, History, left_behind
from harness.tools import ToolOutput
from jobs.apart import each_apart
from jobs.prepared import Prepared
from tools_app.workspace import Workspace, workspace_for

from .files import Brought, Change, bring_up, changes_of, diff_text, named, source_of
from .inturn import in_turn
from .models import Subagent
from .starting import go_on

State = Subagent.State

RESULT_CHARACTERS = 16_000
"""Of an answer; the child's page has all of it."""
_STATES = {
    State.COMPLETED: "completed",
    State.FAILED: "failed",
    State.STOPPED: "stopped",
    State.LOST: "lost",
}
_OF_BACKGROUND = {**_STATES, State.STOPPED: "cancelled"}


def tell(pk: int) -> None:
    """Tell the parent how it ended, with its files where they come back by themselves. In a thread that may
    take long."""
    row = _ended(pk)
    if row is None:
        return
    brought = _bring(row)
    with in_turn():
        Conversation.objects.select_for_update(no_key=True).filter(pk=row.parent_id).first()
        held = _ended(pk)
        if held is None:
            return
        _count(held)
        held.told_at = timezone.now()
        if brought is not None and not brought.problem:
            held.merged = True
        held.save(update_fields=["told_at", "merged", "tokens_used", "seconds"])
        answer = answer_for(held, brought=brought)
        ended = SubagentEnded.model_validate(
            {
                "tool_use_id": held.call_uid,
                "subagent": held.child.uid if held.child is not None else "",
                "state": _STATES[State(held.state)],
                "tokens": held.tokens_used,
                "seconds": held.seconds,
            }
        )
        events: list[EventValue] = [ended]
        if held.background:
            events.append(_announcement(held, answer))
        elif open_call(held.parent_id, held.call_uid) is not None:
            events.append(
                AgentToolResult(
                    tool_use_id=held.call_uid,
                    content=as_blocks(answer.content),
                    is_error=answer.is_error,
                    outcome=_outcome(State(held.state), is_error=answer.is_error),
                    untrusted=answer.untrusted,
                    untrusted_by=answer.untrusted_by,
                )
            )
        append(held.parent_id, [Entry.of(event) for event in events])
        if len(events) > 1:
            go_on(held.parent_id)


def _outcome(state: State, *, is_error: bool) -> ResultOutcome:
    """The same for one that was stopped, whether its end or the parent's own stop is told first."""
    if state == State.STOPPED:
        return "stopped"
    return "error" if is_error else "ok"


def answer_for(row: Subagent, *, brought: Brought | None = None) -> ToolOutput:
    """What an agent reads of one that has ended: how, its words, and its files."""
    said = answer_of(actor=row.parent.owner, child=row.child) if row.child is not None else None
    words = _words(said) if said is not None else ""
    source = said.untrusted_by if said is not None else ""
    source = source or _shown_of_strangers(row, brought) or _told_beside(row)
    text = "\n\n".join(filter(None, (_heading(row), words, _files(row, brought))))
    return ToolOutput(
        _bounded(text),
        is_error=row.state in {State.FAILED, State.LOST},
        untrusted=bool(source),
        untrusted_by=source,
    )


def tell_left() -> None:
    """Whose parents were not told because a process died, and whose conversation is gone."""
    gone = Subagent.objects.working().filter(child=None)
    gone.update(state=State.LOST, ended_at=timezone.now(), detail="Its conversation was deleted.")
    ended = Subagent.objects.untold().filter(state__in=list(_STATES))
    found = ended.order_by("pk").values_list("pk", flat=True)[:100]
    each_apart(tell, found, told="the end of subagent %s could not be told")


_ENDED = Prepared(
    lambda given: (
        Subagent.objects.untold()
        .filter(pk=given.pk, state__in=list(_STATES))
        .select_related("parent__owner", "parent__environment", "child")
    )
)


def _ended(pk: int) -> Subagent | None:
    return _ENDED.first(pk=pk)


def _bring(row: Subagent) -> Brought | None:
    """Bring over what it changed, where that happens by itself: what did not come to its end stays apart."""
    if row.files != Subagent.Files.SHARED or row.state != State.COMPLETED or not row.base:
        return None
    return bring_up(row)


def _count(row: Subagent) -> None:
    """What the work came to, by the child's own log."""
    if row.child is None:
        return
    entries = entries_after(row.child.pk, 0)
    if row.ended_seq:
        entries = [entry for entry in entries if entry.seq <= row.ended_seq]
    turn = History(entries, features=row.child.features).turn
    row.tokens_used = turn.usage.total_tokens + turn.tokens_below
    if turn.began_at and entries:
        last = entries[-1].at - turn.began_at - turn.waited + turn.seconds_below
        row.seconds = round(max(0.0, last), 3)


def _announcement(row: Subagent, answer: ToolOutput) -> BackgroundFinished:
    return BackgroundFinished.model_validate(
        {
            "background_id": row.uid,
            "command": row.description,
            "state": _OF_BACKGROUND[State(row.state)],
            "seconds": row.seconds,
            "tail": str(answer.content),
            "untrusted_by": answer.untrusted_by,
            "subagent": row.child.uid if row.child is not None else row.uid,
        }
    )


def _heading(row: Subagent) -> str:
    facts = [f"{row.seconds:.0f} s", f"{row.tokens_used:,} tokens"]
    ending = f" {row.detail}" if row.detail else ""
    where = f"; its conversation is {row.child.uid}" if row.child is not None else ""
    how = _STATES.get(State(row.state), row.state)
    return f"[{row.uid} ({row.kind}) {how}, {', '.join(facts)}{where}]{ending}"


def _words(said: ToolOutput) -> str:
    return text_of(as_blocks(said.content)) or "(It said nothing.)"


def _to_show(row: Subagent, brought: Brought | None) -> list[Change]:
    """What it changed that is shown line by line."""
    if brought is not None or row.merged is not None or row.files == Subagent.Files.READ_ONLY:
        return []
    return changes_of(row)


def _shown_of_strangers(row: Subagent, brought: Brought | None) -> str:
    """What others wrote in files that are shown or named, also where it has read none of them itself."""
    if brought is not None:
        return brought.untrusted_by
    if row.child is None or not (changes := _to_show(row, brought)):
        return ""
    known = TableProvenance(row.child.pk).foreign()
    folders = known.folders_in(Workspace(workspace_for(row.child.uid)))
    sources = ((change.path, source_of(change, known)) for change in changes)
    told = (
        f"{path}: {source}" if source else known.about_path(path, "", folders)
        for path, source in sources
    )
    return next(filter(None, told), "")


def _told_beside(row: Subagent) -> str:
    """What its parent had read on a branch that was left: it may have been told there what it says."""
    if row.parent.rewound_seq is None:
        return ""
    return left_behind(history_of(row.parent).tainted_beside)


def _files(row: Subagent, brought: Brought | None) -> str:
    if brought is not None:
        return brought.words()
    changes = _to_show(row, brought)
    if not changes:
        return ""
    return (
        f"It changed in its copy: {named(change.path for change in changes)}. Take or refuse that with "
        f"merge_subagent.\n{diff_text(row, changes)}"
    )


def _bounded(text: str) -> str:
    if len(text) <= RESULT_CHARACTERS:
        return text
    left = len(text) - RESULT_CHARACTERS
    return f"{text[:RESULT_CHARACTERS]}\n[{left:,} characters are left out here; ask it for what is missing.]"
