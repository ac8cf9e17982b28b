"""What the subagents of a conversation do while a run is followed, and what came of each: the facts of their
activities beyond what the log of the run says. How they are told is `activities`'.

Words and sums are read from the logs each time, so that what was taken out of them is not told.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from conversations.models import Conversation, Event
from harness.content import text_of
from harness.events import (
    AgentToolResult,
    BackgroundFinished,
    SubagentEnded,
    SubagentStarted,
)
from jobs.prepared import Prepared
from subagents.doing import doing
from subagents.models import Subagent
from subagents.trees import Figures, branch_of
from v1.outgoing import Wire

BELOW = "agui.below"
"""The type of what is said beside the log's events."""
SECONDS = 3.0
"""Between two looks at those that work."""
MOST = 20
"""Of them that are looked at, the latest."""
RESULT = 300
"""Characters of what one answered."""

_WORKING = Prepared(
    lambda given: (
        Subagent.objects.filter(parent=given.parent, state=Subagent.State.RUNNING)
        .exclude(child=None)
        .select_related("child")
        .order_by("-pk")[:MOST]
    )
)


class Below:
    """Those that a conversation has at work, for one stream: each is told where its log has grown."""

    def __init__(
        self, conversation: Conversation, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._conversation = conversation
        self._clock = clock
        self._looked: float | None = None
        self._told: dict[int, int] = {}
        """Where the log of each stood, by its key."""
        self.any = False
        """Whether any worked when it was looked at last, or has begun since."""

    def begun(self) -> None:
        """The log says that one has: it is looked at as soon as that may be again."""
        self.any = True

    def news(self) -> list[Wire]:
        now = self._clock()
        if self._looked is not None and now - self._looked < SECONDS:
            return []
        self._looked = now
        rows = _WORKING.all(parent=self._conversation.pk)
        self.any = bool(rows)
        return [self._about(row) for row in reversed(rows) if self._has_grown(row)]

    def _has_grown(self, row: Subagent) -> bool:
        child = _child_of(row)
        before, self._told[row.pk] = self._told.get(row.pk), child.last_seq
        return before != child.last_seq

    def _about(self, row: Subagent) -> Wire:
        child = _child_of(row)
        began = SubagentStarted(
            tool_use_id=row.call_uid,
            subagent=child.uid,
            name=row.kind,
            description=row.description,
            background=row.background,
        )
        used = branch_of(child)
        facts = {
            "doing": doing(child),
            "waits_for_person": child.waits_for_person,
            "tokens": used.tokens,
            **_cost(used),
        }
        return {"type": BELOW, "id": row.uid, "began": began, "facts": facts}


def came_of(conversation: Conversation, seq: int, end: SubagentEnded) -> dict[str, Any]:
    """The first words of its result and what its conversation cost so far, with all below it; `seq` is the
    end's place in the log: the answer stands right behind it."""
    row = Event.objects.filter(conversation=conversation, seq=seq + 1).first()
    value = row.value if row is not None else None
    text = ""
    if isinstance(value, AgentToolResult) and value.tool_use_id == end.tool_use_id:
        text = text_of(value.content)
    elif isinstance(value, BackgroundFinished) and value.subagent == end.subagent:
        text = value.tail
    came: dict[str, Any] = {"result": text if len(text) <= RESULT else f"{text[:RESULT]}…"}
    child = Conversation.objects.filter(parent=conversation, uid=end.subagent).first()
    return {**came, **_cost(branch_of(child))} if child is not None else came


def _child_of(row: Subagent) -> Conversation:
    assert row.child is not None, "only those are asked for"  # noqa: S101
    return row.child


def _cost(used: Figures) -> dict[str, Any]:
    """US dollars; null: some of it has no price."""
    return {"cost_usd": None if used.unpriced else f"{used.cost.normalize():f}"}
