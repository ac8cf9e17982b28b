"""Judges a call as a run would, outside of any run: for edited inputs, simulations and previews."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conversations.kits import Choice, Unavailable, choose_provider, looked_up, tools_of
from conversations.log import entries_after
from conversations.models import Conversation
from conversations.sandboxing import plan_sandbox
from harness.agentconfig import AgentConfig
from harness.errors import NotConfigured
from harness.events import UserToolConfirmation
from harness.history import History
from harness.kit import Kit
from harness.policy import Judgement
from harness.rules import LevelledRule
from harness.tools import Tool
from net.addresses import meant_by
from providers.table import build
from tools_app.catalogue import all_tools
from tools_app.workspace import workspace_for

from .kitparts import Concerned, part_of, rules_of


def judging_kit(
    config: AgentConfig,
    rules: Sequence[LevelledRule],
    tools: Mapping[str, Tool] | None = None,
) -> Kit:
    """A kit that judges and cannot ask a model anything. `tools`: as they are where it judges; None:
    as they are without a sandbox's policy."""
    return Kit(
        config=config,
        provider=Unavailable(Choice(config.provider, config.model)),
        model=config.model,
        tools=all_tools() if tools is None else tools,
        workspace=Path(),
        meant_by=meant_by,
        rules=rules,
    )


def kit_of(conversation: Conversation) -> Kit:
    config = conversation.config
    concerned = Concerned.in_(conversation)
    sandbox = plan_sandbox(conversation, config, workspace_for(conversation.uid), concerned)
    added = part_of(conversation, config, sandbox.workspace, concerned).tools
    return judging_kit(config, rules_of(conversation, concerned), tools_of(sandbox, added))


def telling_kit(conversation: Conversation) -> Kit:
    """`kit_of` that knows which service is asked there, on which depends what tools it is told of."""
    config = conversation.config
    choice = looked_up(choose_provider(config, conversation.owner, conversation.organisation))
    try:
        provider = Unavailable(choice) if choice.config is None else build(choice.config)
    except NotConfigured:
        provider = Unavailable(choice)
    return replace(kit_of(conversation), provider=provider, model=choice.model)


def history_of(conversation: Conversation) -> History:
    return History(entries_after(conversation.pk, 0), features=conversation.features)


def judge(
    conversation: Conversation,
    tool: str,
    arguments: Mapping[str, Any],
    decision: UserToolConfirmation | None = None,
) -> Judgement:
    """What a run would be told of this call, as the conversation and the rules stand now."""
    return kit_of(conversation).judge(
        tool, history_of(conversation), arguments=arguments, decision=decision
    )
