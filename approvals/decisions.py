"""Which changes of a conversation answer questions before they are asked.

A door that lets tokens in wants the scope `approvals:decide` for them, as for an answer itself. What
they change is the actions'.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from accounts.api.authentication import Caller
from accounts.api.scopes import require_scope
from accounts.models import TokenScope
from agents.models import AgentVersion
from conversations.models import Conversation
from harness.agentconfig import Features, ToolRule

HOLDING_BACK = ("approval", "plan_mode")
"""Switches under which an agent asks before it acts: to turn one off says yes to what it would ask."""


def switches_off(stands: Features, changes: Mapping[str, bool]) -> bool:
    """Whether `changes` turn off what holds the agent back now."""
    return any(getattr(stands, name) and changes.get(name) is False for name in HOLDING_BACK)


def holds_back_less(conversation: Conversation) -> bool:
    """Whether a conversation that begins holds its agent back less than the agent's current version would:
    by a switch, or by an older version that was chosen for it. A canary is measured by itself: those who
    manage the agent let it pass."""
    chosen = conversation.agent_version
    is_canary = chosen.agent.canary_id == chosen.pk
    current = chosen if is_canary else chosen.agent.current or chosen
    return switches_off(current.config.features, conversation.features.model_dump()) or asks_less(
        current.config.tools, chosen.config.tools
    )


def fork_holds_back_less(fork: Conversation, *, own: bool) -> bool:
    """Whether a fork that begins holds its agent back less than that says of itself: by a switch that was
    turned off in the conversation it is of. One that is not one's `own` may be of an older version as well,
    by which nobody could have begun it (`holds_back_less`)."""
    said = fork.agent_version.config.features
    switched = switches_off(said, fork.features.model_dump())
    return switched or (not own and holds_back_less(fork))


def is_looser_than_now(version: AgentVersion) -> bool:
    """Whether an agent of this version holds itself back less than its current one does."""
    current = (version.agent.current or version).config
    after = version.config
    return switches_off(current.features, after.features.model_dump()) or asks_less(
        current.tools, after.tools
    )


def asks_less(before: Iterable[ToolRule], after: Iterable[ToolRule]) -> bool:
    """Whether calls that `before` asks about or refuses may run unasked by `after`: a rule that holds
    back is gone, or one allows what, without any rule, the tool's own nature asks about."""
    stood, kept = list(before), list(after)
    denied = {rule.tool for rule in kept if rule.permission == "always_deny" and rule.when is None}
    return any(
        rule.permission != "always_allow" and rule not in kept and rule.tool not in denied
        for rule in stood
    ) or any(rule.permission == "always_allow" and rule not in stood for rule in kept)


def require_decider(caller: Caller | None) -> None:
    """Raises Forbidden for a token without the scope; a person in her browser (None) has no scopes."""
    if caller is not None:
        require_scope(caller, TokenScope.APPROVALS_DECIDE)
