"""At which points hooks are asked or told, and what they may say there. Data alone."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from harness.hooks import (
    CHILD_BEFORE,
    COMPACTION_BEFORE,
    MODEL_BEFORE,
    TOOL_AFTER,
    TOOL_BEFORE,
    TURN_BEFORE,
)

TURN_AFTER, MODEL_AFTER, COMPACTION_AFTER = "turn.after", "model.after", "compaction.after"
CHILD_AFTER, REST = "child.after", "rest"


@dataclass(frozen=True, slots=True)
class Point:
    name: str
    label: Promise
    verdicts: frozenset[str] = frozenset()
    """What may be said there; none: it is told afterwards, and nobody waits for an answer."""
    adds: bool = False
    """Words for the agent may be said as well."""
    on_calls: bool = False
    """It is about a call, so that patterns of tools choose."""

    @property
    def asks(self) -> bool:
        return bool(self.verdicts)


_NO = frozenset({"pass", "refuse"})
_NO_OR_ASK = _NO | {"ask"}

POINTS = {
    each.name: each
    for each in (
        Point(TURN_BEFORE, _("before a turn"), _NO, adds=True),
        Point(MODEL_BEFORE, _("before a model request"), _NO, adds=True),
        Point(TOOL_BEFORE, _("before a tool call"), _NO_OR_ASK, on_calls=True),
        Point(TOOL_AFTER, _("after a tool call"), _NO, adds=True, on_calls=True),
        Point(CHILD_BEFORE, _("before a subagent"), _NO_OR_ASK, on_calls=True),
        Point(COMPACTION_BEFORE, _("before a summary"), _NO),
        Point(MODEL_AFTER, _("after a model request")),
        Point(COMPACTION_AFTER, _("after a summary")),
        Point(CHILD_AFTER, _("after a subagent")),
        Point(TURN_AFTER, _("after a turn")),
        Point(REST, _("at rest")),
    )
}
"""In the order of pages."""
ASKED = frozenset(name for name, point in POINTS.items() if point.asks)
TOLD = frozenset(POINTS) - ASKED
DEFAULT = (TOOL_BEFORE,)
