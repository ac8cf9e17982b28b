"""What strangers' words a command may bring into its answer and into files, said and marked.

It may bring what it got from the network, which the sandbox's way out knows, what it read from
foreign files, which nobody sees: as long as there are any, it may have read them; and what it was asked
to say by an agent that had read such words. What it leaves running may do the same for ever after.
"""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.contract import Result
from sandbox.policy import Policy
from tools_app.provenance import NOTHING, Foreign, Provenance

HOSTS_NAMED = 3
"""Hosts that are named where a command's reach is said in one line."""
UNCONFINED = "a command that no sandbox held back"
NAMED = 100
"""Characters of what had come in before a command."""


class CommandMarks:
    """What a command may carry from strangers into its output and into files: from the network, from
    foreign files it can read, and in its own words, where untrusted content had come in by
    `tainted_by` before. Plain functions, for threads with tables."""

    def __init__(
        self,
        held: Provenance | None,
        call_id: str,
        policy: Policy,
        *,
        may_be_unconfined: bool = False,
        tainted_by: str = "",
        alone: bool = False,
    ) -> None:
        """`alone`: in a sandbox of its own, with which everything ends that it leaves running."""
        self._held = held
        self._call_id = call_id
        self._policy = policy
        self._may_be_unconfined = may_be_unconfined
        self._tainted_by = tainted_by
        self._alone = alone
        self._known = NOTHING
        self._begun = False

    def begin(self) -> str:
        """What may be foreign in what it brings, as far as that can be said before it has ended."""
        if self._held is not None:
            self._known = self._held.foreign()
        words = read_in_words(self._known) or reach_in_words(self._policy)
        if self._may_be_unconfined:
            words = words or UNCONFINED
        words = words or self._asked_words()
        if self._held is not None and not self._known.settled:
            self._held.begin_command(self._call_id, words)
            self._begun = True
        return words

    def end(self, result: Result) -> str:
        """What was foreign; empty: nothing."""
        known = self._held.foreign(but=self._call_id) if self._held is not None else NOTHING
        read = read_in_words(self._known) or read_in_words(known)
        words = reached_in_words(result, self._policy) or read or self._asked_words()
        if self._begun and self._held is not None:
            leaves = result.left and not self._alone
            self._held.end_command(self._call_id, words, leaves=leaves)
        return words

    def nothing_ran(self) -> None:
        if self._begun and self._held is not None:
            self._held.end_command(self._call_id, "")

    def _asked_words(self) -> str:
        if not self._tainted_by:
            return ""
        source = self._tainted_by[:NAMED]
        return f"a command that was asked for after untrusted content ({source}) had come in"


def read_in_words(foreign: Foreign) -> str:
    """What a command may have read there; empty: nothing."""
    found = foreign.anything
    return f"a command that may have read {found}" if found else ""


def reach_in_words(policy: Policy) -> str:
    """Where a command could get what others wrote; empty: nowhere."""
    if policy.unrestricted:
        return "a command that could reach every public host"
    hosts = sorted({endpoint.host for endpoint in policy.endpoints})
    return f"a command that could reach {_named(hosts)}" if hosts else ""


def reached_in_words(result: Result, policy: Policy) -> str:
    """What it got there; where that is not known, or not over, what it could have."""
    if not result.confined:
        return UNCONFINED
    if result.network is None:
        return reach_in_words(policy)
    if result.network.allowed:
        hosts = list(dict.fromkeys(one.host for one in result.network.decisions if one.allowed))
        return f"a command that reached {_named(hosts)}"
    reach = reach_in_words(policy) if result.left else ""
    return f"{reach} with what it left running" if reach else ""


def _named(hosts: Sequence[str]) -> str:
    more = f" and {len(hosts) - HOSTS_NAMED} more" if len(hosts) > HOSTS_NAMED else ""
    return (", ".join(hosts[:HOSTS_NAMED]) or "the network") + more
