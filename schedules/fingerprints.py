"""What a run was set up with, and what of it differs from the run before: prompt, tools, rules, skills,
model, environment, task.

What can be told in few words is kept as it is, the rest as a digest. Nothing is refused here: what must not
change is pinned (`running.require_beginnable`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from approvals.policyrules import rules_of_new
from conversations.judging import judging_kit
from harness.agentconfig import AgentConfig
from harness.history import History
from harness.policy import Situation
from harness.rules import LevelledRule
from jobs.prepared import Prepared

from .models import OrderRun, StandingOrder
from .pins import Given

MOST_TOLD = 300
"""Characters of what is told of one part."""
KEPT = 500
"""Agents whose tools were judged by the same rules: a thousand runs may begin in a minute, most of them with
the same few."""


def fingerprint_of(order: StandingOrder, given: Given) -> dict[str, Any]:
    """Of a run that begins now and was given this."""
    version = order.agent_version
    config = version.config
    rules = rules_of_new(order.organisation_id, version.agent_id, order.owner_id)
    key = (json.dumps(version.stored_config), tuple(repr(held) for held in rules))
    tools = dict(_verdicts(_Judged(key, config, rules)))
    environment = order.environment
    return {
        "agent": str(version.number),
        "model": f"{order.provider}/{order.model}",
        "prompt": _digest(
            [
                config.instructions,
                *(each.text for each in given.prompts),
                *(row.text for row in given.steering),
            ]
        ),
        "tools": [*tools, *(f"mcp:{use.name}" for use in config.mcp_servers)],
        "rules": _digest(
            [tools, [repr(held) for held in rules], [repr(one) for one in config.tools]]
        ),
        "skills": sorted(f"{one.skill.name} {one.label}" for one in given.skills),
        "environment": f"{environment.name} ({environment.version})",
        "sandbox": _digest([repr(environment.sandbox_policy), config.sandbox]),
        "task": _digest(
            order.messages if order.outcome is None else [*order.messages, order.outcome]
        ),
    }


@dataclass(frozen=True, slots=True)
class _Judged:
    """An agent and the rules that hold beside its own, compared by all they say."""

    key: tuple[str, tuple[str, ...]]
    config: AgentConfig = field(compare=False)
    rules: Sequence[LevelledRule] = field(compare=False)


@lru_cache(maxsize=KEPT)
def _verdicts(judged: _Judged) -> tuple[tuple[str, str], ...]:
    """What each tool that it is offered may do when nothing has happened yet."""
    config = judged.config
    history = History(features=config.features)
    kit = judging_kit(config, judged.rules)
    policy, situation = kit.policy_in(history), Situation(config.features)
    return tuple(
        (name, policy.judge(tool, name, situation, arguments={}).verdict.value)
        for name, tool in sorted(kit.tools_in(history).items())
        if policy.offers(tool, history.features)
    )


def drift(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[list[str]]:
    """Pairs of a part that differs and of what is told of it: from what to what, what came and went, or
    nothing where only digests are known."""
    found = []
    for part, now in after.items():
        was = before.get(part, now)
        if was == now:
            continue
        if isinstance(now, list):
            came = [f"+{name}" for name in now if name not in was]
            gone = [f"−{name}" for name in was if name not in now]
            found.append([part, ", ".join([*came, *gone])[:MOST_TOLD]])
        elif part in {"agent", "model", "environment"}:
            found.append([part, f"{was} → {now}"[:MOST_TOLD]])
        else:
            found.append([part, ""])
    return found


_LAST = Prepared(
    lambda given: (
        OrderRun.objects.filter(order=given.order)
        .exclude(pk=given.run)
        .exclude(fingerprint={})
        .order_by("-pk")
    )
)


def note(run: OrderRun, given: Given) -> None:
    """Put into the run, which begins, what it was set up with and what differs from the last that began. It
    is not saved."""
    run.fingerprint = fingerprint_of(run.order, given)
    last = _LAST.first(order=run.order_id, run=run.pk)
    run.drift = drift(last.fingerprint, run.fingerprint) if last is not None else []


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
