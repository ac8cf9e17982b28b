"""What the tools of one conversation say and do about its subagents, each in a database thread."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from django.utils import timezone

from conversations.actions.children import answer_of
from conversations.models import Conversation
from harness.errors import Conflict, NotFound
from harness.tools import ToolOutput

from . import stopping
from .ending import answer_for
from .files import bring_up, changes_of
from .models import Subagent
from .tools import SubagentAccess

LISTED = 50


def access_of(conversation: Conversation) -> SubagentAccess:
    return SubagentAccess(
        overview=partial(_overview, conversation.pk),
        show=partial(_show, conversation.pk),
        stop=partial(_stop, conversation.pk),
        merge=partial(_merge, conversation.pk),
    )


def _overview(parent: int) -> list[tuple[str, str]]:
    rows = Subagent.objects.filter(parent=parent).order_by("-pk")[:LISTED]
    return [(row.call_uid, _line(row)) for row in rows]


def _show(parent: int, uid: str) -> tuple[str, ToolOutput]:
    row = _find(parent, uid)
    if row.child is None or row.is_live:
        return row.call_uid, ToolOutput(_line(row))
    return row.call_uid, replace(answer_for(row), is_error=False)


def _stop(parent: int, uid: str) -> str:
    row = _find(parent, uid)
    if not row.is_live:
        return f"{row.uid} has ended already: {_stand(row)}."
    stopping.ask_for_end(Subagent.objects.filter(pk=row.pk))
    stopping.end(row)
    return f"{row.uid} is being stopped, with everything below it."


def _merge(parent: int, uid: str, accept: bool) -> ToolOutput:
    row = _find(parent, uid)
    if row.is_live:
        raise Conflict(f"{row.uid} is at work still.", hint="Wait until it has ended.")
    if not changes_of(row):
        return ToolOutput(f"{row.uid} changed no files.")
    if row.merged is not None:
        done = "taken" if row.merged else "refused"
        return ToolOutput(f"What {row.uid} changed was {done} before.")
    if not accept:
        Subagent.objects.filter(pk=row.pk).update(merged=False)
        return ToolOutput(f"What {row.uid} changed stays in its copy.")
    brought = bring_up(row)
    if not brought.problem:
        Subagent.objects.filter(pk=row.pk).update(merged=True)
    source = _read_by(row) or brought.untrusted_by
    return ToolOutput(
        brought.words(),
        is_error=bool(brought.problem),
        untrusted=bool(source),
        untrusted_by=source,
    )


def _read_by(row: Subagent) -> str:
    """What strangers' words it has read, which may be in names that it gave."""
    if row.child is None:
        return ""
    return answer_of(actor=row.parent.owner, child=row.child).untrusted_by


def _find(parent: int, uid: str) -> Subagent:
    rows = Subagent.objects.filter(parent=parent, uid=uid.replace("\0", ""))
    row = rows.select_related("parent__owner", "parent__environment", "child").first()
    if row is None:
        raise NotFound(
            f"There is no subagent “{uid[:60]}” in this conversation.",
            hint="Call subagents without an id for those there are.",
        )
    return row


def _line(row: Subagent) -> str:
    return f"{row.uid}  {_stand(row)}  {row.kind}: {row.description}"


def _stand(row: Subagent) -> str:
    if row.state == Subagent.State.RUNNING and row.started_at is not None:
        return f"at work for {(timezone.now() - row.started_at).total_seconds():.0f} s"
    if row.state == Subagent.State.WAITING:
        return "about to begin"
    return f"{row.state} after {row.seconds:.0f} s, {row.tokens_used:,} tokens"
