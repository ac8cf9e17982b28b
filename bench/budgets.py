"""The budgets: what is measured, as a ratio to what, and how much is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Budget:
    id: str
    """B1 … B18, TEAM, RECALL, API, BASH, MCP or SKILLS; several lines may share one."""
    part: str
    figure: str
    unit: str
    direction: Literal["at most", "at least"]
    limit: float | None
    """None: no budget was set; the figure is shown for comparison."""
    aim: float | None

    @property
    def name(self) -> str:
        return f"{self.id} {self.part}".strip()

    def is_met(self, value: float) -> bool:
        if self.limit is None:
            return True
        return value >= self.limit if self.direction == "at least" else value <= self.limit


BUDGETS: tuple[Budget, ...] = (
    Budget("B1", "", "conversations at 50 deltas/s on one core / SDK", "x", "at least", 1.5, 2.5),
    Budget("B1", "begun", "the same, each of them begun at /api / SDK", "x", "at least", 1.0, 2.0),
    Budget("B2", "", "server CPU a delta at 100 conversations / SDK", "x", "at most", 0.8, 0.6),
    Budget("B3", "", "the same with Redis, web and worker summed", "x", "at most", 1.0, 0.9),
    Budget("B4", "p50", "time to first delta added over SDK, idle", "ms", "at most", 3, 1),
    Budget("B4", "p99", "time to first delta added over SDK, idle", "ms", "at most", 10, 5),
    Budget("B5", "", "time to first delta p99 at 80 % of capacity", "ms", "at most", 500, 300),
    Budget("B6", "", "lateness p99 at half capacity (window 40 ms)", "ms", "at most", 60, 60),
    Budget("B7", "", "CPU of one loop step / one raw SDK call", "x", "at most", 2.5, 1.5),
    Budget("B7", "traced", "CPU of a step with a collector / without", "x", "at most", 1.05, 1.0),
    Budget("B8", "", "CPU of step 200 / step 5", "x", "at most", 1.2, 1.0),
    Budget("B9", "SQLite", "events/s with 64 writers / acreate", "x", "at least", 5, 9),
    Budget("B9", "PostgreSQL", "events/s with 64 writers / acreate", "x", "at least", 5, 9),
    Budget("B10", "", "CPU of a 1 MB tool input / SDK", "x", "at most", 1.0, 0.2),
    Budget("B10", "growth", "CPU of 1 MB / four times that of 250 KB", "x", "at most", 1.2, 1.0),
    Budget("B11", "screen", "first screen, 10,000 events / 100", "x", "at most", 1.3, 1.0),
    Budget("B11", "replay", "5,000 events exported / DRF serializer", "x", "at most", 0.15, 0.07),
    Budget("B12", "list", "list page at 100k conversations / 1k", "x", "at most", 1.2, 1.0),
    Budget("B12", "search", "search at 100k conversations / 1k", "x", "at most", 1.2, 1.0),
    Budget("B13", "idle", "memory of an idle socket", "KB", "at most", 60, 30),
    Budget("B13", "streaming", "memory of a streaming conversation", "KB", "at most", 100, 60),
    Budget("B14", "", "first page after `manage.py up`, warm", "s", "at most", 6, 4),
    Budget("B15", "", "two web and two workers / one process", "x", "at least", 1.6, 1.9),
    *(
        Budget("B16", part, "CPU of a short turn / one raw SDK call", "x", "at most", 4.0, 2.5)
        for part in ("at /api", "at a page")
    ),
    *(
        Budget("B17", f"{part}{by}", "p95 in 100k memories, 50k passages", "ms", "at most", 50, 25)
        for part in ("SQLite", "PostgreSQL")
        for by in ("", " with letters")
    ),
    *(
        Budget("B17", f"{part}{by} growth", "the same / in a tenth", "x", "at most", 2.0, 1.2)
        for part in ("SQLite", "PostgreSQL")
        for by in ("", " with letters")
    ),
    *(
        Budget("B17", f"{part}{by}", f"of these, {words}", unit, "at most", None, None)
        for part in ("SQLite", "PostgreSQL")
        for by, words, unit in (
            (" busy", "p95 of its thread", "ms"),
            (" with letters busy", "p95 of its thread", "ms"),
            (" with letters first", "the first of a process", "ms"),
            (" with letters same", "of the ten nearest, found", "%"),
        )
    ),
    Budget("B18", "idle", "core taken by 10,000 schedules, none due", "%", "at most", 1.0, 0.2),
    Budget("B18", "due", "until the last of 1,000 due at once begins", "s", "at most", 60, 30),
    Budget("B18", "chat", "lateness p99 meanwhile (window 40 ms)", "ms", "at most", 60, 60),
    Budget("TEAM", "idle", "CPU of an idle teammate, a minute", "ms", "at most", 2.0, 0.5),
    Budget("TEAM", "memory", "memory of an idle teammate", "KB", "at most", 2.0, 1.0),
    Budget("TEAM", "start", "CPU of starting a child / a first turn", "x", "at most", 3.0, 1.5),
    Budget("TEAM", "children", "lateness p99 of 50 children at once", "ms", "at most", 100, 60),
    Budget(
        "RECALL",
        "evidence",
        "questions with the evidence among the first five",
        "%",
        "at least",
        85,
        92,
    ),
    Budget(
        "RECALL", "now", "questions about now with the newest fact first", "%", "at least", 90, 95
    ),
    Budget(
        "RECALL", "unknown", "questions without an answer told as unsure", "%", "at least", 95, 99
    ),
    Budget("RECALL", "sure", "questions with one not told so", "%", "at least", None, None),
    Budget(
        "RECALL",
        "other words",
        "evidence of what is asked in other words",
        "%",
        "at least",
        None,
        None,
    ),
    *(
        Budget("RECALL", f"{part} with letters", f"{words}, also by letters", "%", "at least", *of)
        for part, words, of in (
            ("evidence", "evidence among the first five", (85, 92)),
            ("now", "the newest fact first", (90, 95)),
            ("unknown", "without an answer told as unsure", (95, 99)),
            ("sure", "with one not told so", (None, None)),
            ("other words", "evidence in other words", (None, None)),
        )
    ),
    *(
        Budget("API", part, f"{part} at /v1 / an empty signed-in view", "x", "at most", None, None)
        for part in ("create", "send", "list")
    ),
    *(
        Budget("BASH", f"{name}{way}", "`echo` in a sandbox / without", "x", "at most", limit, None)
        for name in ("bubblewrap", "process", "docker", "openshell")
        for way, limit in (("", None), (", shell kept", 2.0))
    ),
    Budget("MCP", "call", "a call through our client / the bare SDK's", "x", "at most", 1.3, 1.1),
    Budget("MCP", "connect", "ten servers at once / the slowest alone", "x", "at most", 1.3, 1.1),
    Budget("MCP", "door", "a call of /mcp / the SDK's own minimal server", "x", "at most", 2, 1.5),
    Budget("MCP", "step", "CPU that 200 tools of ten servers add to one", "ms", "at most", 1, 0.5),
    Budget("SKILLS", "step", "CPU that 1,000 skills add to one", "ms", "at most", 1, 0.5),
    Budget("SKILLS", "share", "of the prompt, in parts of their share", "x", "at most", 1.05, 1),
    Budget("SKILLS", "nested", "CPU of a skill's call / of a model's step", "x", "at most", 2, 1),
    Budget("SKILLS", "at once", "the same / of many in one step", "x", "at most", None, None),
)

IDS = tuple(dict.fromkeys(budget.id for budget in BUDGETS))


@dataclass(frozen=True, slots=True)
class Reading:
    """One round's value of one budget."""

    name: str
    value: float
    measured: float | None = None
    reference: float | None = None
    doubt: str = ""
    """Why it does not count: the load or the stand-in was at its own limit."""


class NotMeasured(Exception):
    """This machine, or this installation, cannot show it; the message says why."""


def wanted(ids: Sequence[str]) -> tuple[Budget, ...]:
    """The budgets named by `ids`, all for none. Raises ValueError for an unknown one."""
    unknown = sorted(set(ids) - set(IDS))
    if unknown:
        raise ValueError(f"There is no budget {', '.join(unknown)}; there are {', '.join(IDS)}.")
    return tuple(budget for budget in BUDGETS if not ids or budget.id in ids)
