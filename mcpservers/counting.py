"""How often the tools of MCP servers are called, how long that takes and how it failed last: a row for each
tool and day, kept for a month, without a word of who called or what was said.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Sum
from django.db.models.functions import Greatest
from django.utils import timezone

from .models import McpTool, McpToolDay

DAYS = 30
AT_A_TIME = 500


@dataclass(frozen=True, slots=True)
class Counted:
    """The calls of one tool in the last days."""

    calls: int = 0
    failed: int = 0
    mean_ms: int = 0
    slowest_ms: int = 0

    @property
    def mean_seconds(self) -> float:
        return self.mean_ms / 1_000

    @property
    def slowest_seconds(self) -> float:
        return self.slowest_ms / 1_000


def count_call(tool_id: int, seconds: float, failure: McpTool.Failure | None = None) -> None:
    """One call that came to its end. In a thread with tables; nothing for a tool that is gone."""
    now = timezone.now()
    took = max(0, round(seconds * 1_000))
    rows = McpToolDay.objects.filter(tool=tool_id, day=now.date())
    more = {
        "calls": F("calls") + 1,
        "failed": F("failed") + (failure is not None),
        "milliseconds": F("milliseconds") + took,
        "slowest": Greatest(F("slowest"), took),
    }
    if not rows.update(**more):
        try:
            with transaction.atomic():
                if not McpTool.objects.select_for_update().filter(pk=tool_id).exists():
                    return
                McpToolDay.objects.get_or_create(tool_id=tool_id, day=now.date())
        except IntegrityError:  # it went away meanwhile
            return
        rows.update(**more)
    if failure is not None:
        McpTool.objects.filter(pk=tool_id).update(failed_at=now, failure=failure)


def prune() -> int:
    """Forget days that are over, also of tools that nobody calls any more, some at a time; how many."""
    over = timezone.now().date() - timedelta(days=DAYS)
    old = McpToolDay.objects.filter(day__lt=over).order_by("day")
    keys = list(old.values_list("pk", flat=True)[:AT_A_TIME])
    return McpToolDay.objects.filter(pk__in=keys).delete()[0] if keys else 0


def counted(tools: Iterable[McpTool]) -> dict[int, Counted]:
    """By tool, for those that were called."""
    since = timezone.now().date() - timedelta(days=DAYS)
    rows = (
        McpToolDay.objects.filter(tool__in=[tool.pk for tool in tools], day__gte=since)
        .order_by()
        .values("tool")
        .annotate(
            all=Sum("calls"), bad=Sum("failed"), took=Sum("milliseconds"), most=Max("slowest")
        )
    )
    return {
        row["tool"]: Counted(row["all"], row["bad"], round(row["took"] / row["all"]), row["most"])
        for row in rows
        if row["all"]
    }
