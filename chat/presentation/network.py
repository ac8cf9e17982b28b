"""What a command asked its way out for, as people read it: one line, and each kind of request below it.

What was decided is the sandbox's part (`sandbox.traffic`).
"""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from harness.events import NetworkDecision, NetworkRecord
from reading.unseen import visible

NAMED = 3
"""Hosts in the one line."""


@dataclass(frozen=True, slots=True)
class Request:
    """One kind of request."""

    method: str
    place: str
    allowed: bool
    reason: str
    times: int


@dataclass(frozen=True, slots=True)
class Network:
    summary: str
    requests: tuple[Request, ...]
    more: int
    """Requests of kinds that are not listed."""


def network_of(record: NetworkRecord | None) -> Network | None:
    """None where nothing was asked for."""
    if record is None or not (record.allowed or record.refused):
        return None
    requests = tuple(map(_request, record.decisions))
    listed = sum(request.times for request in requests)
    refused_first = sorted(record.decisions, key=lambda one: one.allowed)
    hosts = list(dict.fromkeys(visible(one.host) for one in refused_first))
    named = ", ".join(hosts[:NAMED]) + (", …" if len(hosts) > NAMED else "")
    summary = _("Network: %(allowed)d allowed, %(refused)d refused: %(hosts)s") % {
        "allowed": record.allowed,
        "refused": record.refused,
        "hosts": named,
    }
    return Network(summary, requests, max(0, record.allowed + record.refused - listed))


def _request(decision: NetworkDecision) -> Request:
    return Request(
        decision.method,
        f"{visible(decision.host)}:{decision.port}",
        decision.allowed,
        visible(decision.reason),
        decision.times,
    )
