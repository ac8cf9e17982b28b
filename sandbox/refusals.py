"""Why a command does not run: which guarantee is missing, whose rule asks for it, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .contract import Capabilities, Unavailable
from .guarantees import MEANING, Guarantee
from .policy import Policy

REMEDY: dict[Guarantee, str] = {
    Guarantee.EGRESS_ALLOW_LIST: "use the bubblewrap backend, or remove every host from "
    "network_policies",
    Guarantee.EGRESS_PUBLIC_ONLY: "use the bubblewrap backend, or list single hosts in "
    "network_policies",
    Guarantee.MEMORY_TOTAL: "let the server write a control group (memory controller)",
    Guarantee.PIDS_TOTAL: "let the server write a control group (pids controller), or do not run "
    "it as root",
    Guarantee.FS_HIDDEN: "use the bubblewrap backend",
    Guarantee.SCRATCH_BOUNDED: "use the bubblewrap backend",
}
"""The operator's way to the guarantee; for others it is `_INSTALL`."""
_INSTALL = "install bubblewrap and let the server's user create user namespaces"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One backend's answer to a policy it cannot hold."""

    backend: str
    missing: tuple[Guarantee, ...]
    problem: str
    remedy: str

    def sentence(self) -> str:
        return f"{self.backend}: {self.problem}"


def missing(policy: Policy, capabilities: Capabilities) -> Refusal | None:
    """What keeps a backend with these capabilities from holding `policy`; None if nothing does."""
    name = capabilities.backend
    if not capabilities.available:
        return Refusal(name, (), capabilities.problem or "it is not available", capabilities.remedy)
    lacking = tuple(
        guarantee
        for guarantee in Guarantee
        if guarantee in policy.required and guarantee not in capabilities.guarantees
    )
    if not lacking:
        return None
    return Refusal(
        name,
        lacking,
        "; ".join(_lack(guarantee, capabilities) for guarantee in lacking),
        "; ".join(dict.fromkeys(REMEDY.get(guarantee, _INSTALL) for guarantee in lacking)),
    )


def _lack(guarantee: Guarantee, capabilities: Capabilities) -> str:
    reason = capabilities.reasons.get(guarantee, "")
    text = f"it cannot promise “{guarantee}” ({MEANING[guarantee]})"
    return f"{text}, because {reason}" if reason else text


def refuse(policy: Policy, refusals: Sequence[Refusal]) -> Unavailable:
    """The error for a command that no backend may run."""
    if not refusals:
        return Unavailable(
            "The command was not run: no sandbox is configured.",
            hint="Staff can name one in the environment's settings.",
        )
    asked = sorted({guarantee for refusal in refusals for guarantee in refusal.missing})
    rule = _rule(policy, asked)
    reasons = "\n".join(f"- {refusal.sentence()}." for refusal in refusals)
    remedies = list(dict.fromkeys(refusal.remedy for refusal in refusals if refusal.remedy))
    hint = f"For the operator: {'; or '.join(remedies)}. " if remedies else ""
    return Unavailable(
        f"The command was not run: no sandbox of this server can hold the policy{rule}\n{reasons}",
        hint=f"{hint}Trying the command again will not help; go on without it or tell the person.",
    )


def _rule(policy: Policy, asked: Iterable[Guarantee]) -> str:
    implied = {
        Guarantee.EGRESS_ALLOW_LIST: "network_policies lists hosts",
        Guarantee.EGRESS_PUBLIC_ONLY: "network_policies opens every public host",
    }
    named = [
        implied[guarantee]
        if guarantee in implied and guarantee not in policy.require
        else f"require lists “{guarantee}”"
        for guarantee in asked
    ]
    return f" (its {', '.join(named)})." if named else "."


def refuse_rule(what: str, rule: str, *, remedy: str) -> Unavailable:
    """The error for one thing that a backend cannot do, whatever it promises otherwise."""
    return Unavailable(f"The command was not run: {what} ({rule}).", hint=remedy)
