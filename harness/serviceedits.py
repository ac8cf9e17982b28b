"""What a model's service leaves out of a long prompt by itself, where its agent has it do that.

Decides whether and from when on; saying it on the wire is the provider's part, standing back meanwhile
`transcript`'s and the loop's. Edits go by the names that Anthropic's service gives them.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.agentconfig import AgentConfig
from harness.messages import ServiceEdits

CLEARS_RESULTS = "clear_tool_uses_20250919"
CLEARS_THINKING = "clear_thinking_20251015"
COMPACTS = "compact_20260112"
LEAST_COMPACTED = 50_000
"""Tokens of prompt below which the service makes none (platform.claude.com, November 2026)."""


@dataclass(frozen=True, slots=True)
class Chosen:
    edits: ServiceEdits | None
    """None: the service leaves out nothing."""
    words: str
    """Who shortens what, in words; empty: the agent has not asked for the service."""


OURS = Chosen(None, "")


def edits_for(config: AgentConfig, known: frozenset[str], *, hooked: bool = False) -> Chosen:
    """`known` are the edits that service and model have. `hooked`: somebody is asked before summaries, and
    sees none that the service makes."""
    wish, limits = config.shortening, config.limits
    if wish.by != "service":
        return OURS
    compact_at = int(limits.context_window * limits.compact_at)
    why_not = ""
    if COMPACTS not in known:
        why_not = "the model's service here does not do it"
    elif compact_at < LEAST_COMPACTED:
        why_not = (
            f"the service begins at {LEAST_COMPACTED:,} tokens, and it is to be at {compact_at:,}"
        )
    elif hooked:
        why_not = "hooks are asked before, which see no summary that the service makes"
    if CLEARS_RESULTS not in known and why_not:
        return Chosen(None, f"Agentsite shortens: {why_not}.")
    edits = ServiceEdits(
        clear_at=int(limits.context_window * wish.clear_at) if CLEARS_RESULTS in known else 0,
        keep_results=wish.keep_results,
        keep_thinking=wish.keep_thinking if CLEARS_THINKING in known else 0,
        compact_at=0 if why_not else compact_at,
    )
    clears = f"The model's service leaves out old results past {edits.clear_at:,} tokens"
    if why_not:
        return Chosen(edits, f"{clears}. Agentsite summarises: {why_not}.")
    return Chosen(edits, f"{clears} and summarises past {edits.compact_at:,}.")
