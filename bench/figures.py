"""Numbers out of many: quantiles, medians, and what a load of sessions looked like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

STAMP = 16
"""Characters of a delta: when it was due by the monotonic clock, and a space."""
KEEPS_UP_SECONDS = 0.100
"""A session keeps up when 99 % of its deltas arrive within this after they were due."""

__all__ = ["STAMP", "Session", "Sessions", "median", "quantile"]


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of `values` do not exceed; infinite when there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else float("inf")


@dataclass(slots=True)
class Session:
    """One conversation as its client saw it; times by the monotonic clock, in seconds."""

    asked: float = 0.0
    first: float = 0.0
    ended: float = 0.0
    wanted: int = 0
    late: list[float] = field(default_factory=list)
    failure: str = ""

    def hear(self, text: str, now: float, since: float = 0.0) -> None:
        """Whole deltas that came `now`: each says when it was due, and counts if that was after `since`."""
        if text and not self.first:
            self.first = now
        for start in range(0, len(text), STAMP):
            due = float(text[start : start + STAMP - 1])
            if due >= since:
                self.late.append(now - due)

    @property
    def is_whole(self) -> bool:
        return not self.failure and len(self.late) == self.wanted

    @property
    def keeps_up(self) -> bool:
        return self.is_whole and quantile(self.late, 0.99) <= KEEPS_UP_SECONDS


@dataclass(frozen=True, slots=True)
class Sessions:
    """What became of many sessions. Milliseconds for people, as everywhere in results."""

    count: int
    whole: int
    keep_up: float
    """Share of the sessions that kept up."""
    late_p99_ms: float
    first_p50_ms: float
    first_p99_ms: float
    microseconds_per_delta: float
    """Processor time of what was watched, over the time in which all sessions streamed."""
    client_cores: float
    watched_cores: float
    failures: tuple[str, ...]

    @classmethod
    def of(
        cls,
        sessions: Sequence[Session],
        *,
        window: tuple[float, float],
        watched_seconds: float,
        client_seconds: float,
        deltas_per_second: float,
    ) -> Sessions:
        span = max(1e-9, window[1] - window[0])
        late = [value for session in sessions for value in session.late]
        first = [one.first - one.asked for one in sessions if one.first]
        failures = [one.failure for one in sessions if one.failure]
        return cls(
            count=len(sessions),
            whole=sum(one.is_whole for one in sessions),
            keep_up=sum(one.keeps_up for one in sessions) / max(1, len(sessions)),
            late_p99_ms=quantile(late, 0.99) * 1000,
            first_p50_ms=quantile(first, 0.5) * 1000,
            first_p99_ms=quantile(first, 0.99) * 1000,
            microseconds_per_delta=watched_seconds / (deltas_per_second * span) * 1e6,
            client_cores=client_seconds / span,
            watched_cores=watched_seconds / span,
            failures=tuple(sorted(set(failures))[:5]),
        )

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
