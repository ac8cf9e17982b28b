"""What subagents may cost at most, said before they begin. What they do cost is `spending`'s to hold."""

from __future__ import annotations

from decimal import Decimal

from harness.agentconfig import AgentConfig
from harness.events import SpanModelRequestStart
from spending.prices import worst_cost

OUTPUT_SHARE = 4
"""One token in so many is taken for one of output."""


def cost_of_a_turn(config: AgentConfig) -> Decimal | None:
    """US dollars for all that one turn may use, in the hands of subagents. None where the model has no
    price."""
    role = config.for_role("subagent")
    tokens = config.limits.token_budget
    output = tokens // OUTPUT_SHARE
    begun = SpanModelRequestStart(
        provider=role.provider,
        model=role.model,
        prompt_tokens_at_most=tokens - output,
        output_tokens_at_most=output,
    )
    return worst_cost(begun)


def cost_of(turn: Decimal, together: int) -> Decimal:
    """The most that so many together may cost: they and their parent share what is left of its turn."""
    return turn * together / (together + 1)
