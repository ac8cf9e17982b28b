"""What strangers' words a command may bring into its answer and into files, said and marked.

It may bring what it got from the network, which the sandbox's way out knows, and what it read from
foreign files, which nobody sees: as long as there are any, it may have read them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tools_app.provenance import NOTHING, Provenance
from tools_app.sandbox.contract import Result
from tools_app.sandbox.policy import Policy

HOSTS_NAMED = 3
"""Hosts that are named where a command's reach is said in one line."""
UNCONFINED = "a command that no sandbox held back"


class CommandMarks:
    """What a command may carry from strangers into its output and into files: from the network, and
    from foreign files it can read. Plain functions, for threads with tables."""

    def __init__(
        self,
        held: Provenance | None,
        call_id: str,
        policy: Policy,
        *,
        may_be_unconfined: bool = False,
    ) -> None:
        self._held = held
        self._call_id = call_id
        self._policy = policy
        self._may_be_unconfined = may_be_unconfined
        self._known = NOTHING
        self._begun = False

    def begin(self) -> str:
        """What may be foreign in what it brings, as far as that can be said before it has ended."""
        if self._held is not None:
            self._known = self._held.foreign()
        words = self._read_words() or reach_in_words(self._policy)
        if self._may_be_unconfined:
            words = words or UNCONFINED
        if words and self._held is not None and not self._known.settled:
            self._held.begin_command(self._call_id, words)
            self._begun = True
        return words

    def end(self, result: Result) -> str:
        """What was foreign; empty: nothing."""
        words = reached_in_words(result, self._policy) or self._read_words()
        if self._begun and self._held is not None:
            self._held.end_command(self._call_id, words)
        return words

    def nothing_ran(self) -> None:
        if self._begun and self._held is not None:
            self._held.end_command(self._call_id, "")

    def _read_words(self) -> str:
        found = self._known.anything
        return f"a command that may have read {found}" if found else ""


def reach_in_words(policy: Policy) -> str:
    """Where a command could get what others wrote; empty: nowhere."""
    if policy.unrestricted:
        return "a command that could reach every public host"
    hosts = sorted({endpoint.host for endpoint in policy.endpoints})
    return f"a command that could reach {_named(hosts)}" if hosts else ""


def reached_in_words(result: Result, policy: Policy) -> str:
    """What it got there; where that is not known, what it could have."""
    if not result.confined:
        return UNCONFINED
    if result.network is None:
        return reach_in_words(policy)
    hosts = list(dict.fromkeys(one.host for one in result.network.decisions if one.allowed))
    return f"a command that reached {_named(hosts)}" if result.network.allowed else ""


def _named(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - HOSTS_NAMED} more" if len(hosts) > HOSTS_NAMED else ""
    return (", ".join(hosts[:HOSTS_NAMED]) or "the network") + more
