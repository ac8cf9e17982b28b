"""What one sandbox's way out decided, kept until the command that asked is over, and told to the log.

Counts everything and keeps the first of each kind, so that a command that asks without end costs
nothing. Deciding is `sandbox.egress`'.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from harness.events import NetworkDecision, NetworkRecord

from .egress import Decision, OnDecision

KINDS = 50
"""Different decisions that are kept of one command."""
REASON = 300
"""Characters of one reason."""

logger = logging.getLogger("agentsite.egress")


@dataclass(slots=True)
class Traffic:
    """The decisions of one sandbox. Belongs to the loop of its proxy."""

    also: OnDecision | None = None
    """Told of each decision as well."""
    _kinds: dict[tuple[str, str, int, bool, str], int] = field(default_factory=dict)
    _allowed: int = 0
    _refused: int = 0

    def note(self, decision: Decision) -> None:
        if decision.allowed:
            self._allowed += 1
        else:
            self._refused += 1
        kind = (
            decision.method,
            decision.host,
            decision.port,
            decision.allowed,
            decision.reason[:REASON],
        )
        if kind in self._kinds or len(self._kinds) < KINDS:
            self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if self.also is not None:
            self.also(decision)

    def take(self) -> NetworkRecord:
        """What was decided since the last time: of a shell, also what programs asked for that an
        earlier command had left in the background."""
        record = NetworkRecord(
            allowed=self._allowed,
            refused=self._refused,
            decisions=tuple(
                NetworkDecision(
                    method=method, host=host, port=port, allowed=allowed, reason=reason, times=times
                )
                for (method, host, port, allowed, reason), times in self._kinds.items()
            ),
        )
        self._kinds, self._allowed, self._refused = {}, 0, 0
        return record


def log_decision(decision: Decision) -> None:
    """For operators: with the address, which nobody else is told."""
    logger.info(
        "%s %s:%s %s: %s%s",
        decision.method,
        decision.host,
        decision.port,
        "allowed" if decision.allowed else "refused",
        decision.reason,
        f" ({decision.address})" if decision.address else "",
    )
