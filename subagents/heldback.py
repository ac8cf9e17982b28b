"""What holds an agent back holds back whoever works for it below, also where that one began before.

Its switches are turned on there with its own, and what the conversation took away of the agent's tools is
taken from those below that are the same agent in the same version. Another agent has its own tools. What asks
and denies by rules of the table is `approvals`' to carry down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from accounts.models import User
from agents.models.agent import read_config
from agents.narrowing import CAREFUL
from conversations.ancestry import ancestors
from conversations.log import append
from conversations.models import Conversation, Event
from harness.agentconfig import AgentConfig, Features, McpUse, ToolRule
from harness.events import Event as EventValue
from harness.events import SessionUpdated
from harness.history import Entry
from harness.rules import Level, LevelledRule
from jobs.prepared import Prepared

_OF_TOOLS = ("tools", "custom_tools", "mcp_servers")
"""Fields of a conversation's own by which its agent has fewer tools."""

_ABOVE = Prepared(
    lambda given: Conversation.objects.filter(
        pk=given.pk, agent_version=given.version, unlisted=False
    ).values_list("overrides")
)
"""Not one that only keeps the conversations of a run, an evaluation or a comparison together: each of these
has the tools that it was begun with."""


def held_back_by(*those: Features) -> dict[str, bool]:
    """The switches that hold an agent back where one of `those` does."""
    return {name: any(getattr(each, name) for each in those) for name in CAREFUL}


def project(conversation: Conversation, row: Event, event: EventValue) -> None:
    """Turn on below what was turned on here, in the same transaction; the event there does so for those
    below it. Turning off is said of each by itself: one may be held back for its own sake."""
    if not isinstance(event, SessionUpdated):
        return
    _turn_on_below(
        conversation.pk, {name for name in CAREFUL if event.features.get(name)}, row.actor
    )


def _turn_on_below(parent: int, names: Set[str], actor: User | None) -> None:
    if not names:
        return
    for child in Conversation.objects.filter(parent=parent).order_by("pk"):
        has = {name for name in names if getattr(child.features, name)}
        ended = child.status == Conversation.Status.TERMINATED
        if not ended and (missing := dict.fromkeys(sorted(names - has), True)):
            append(child.pk, [Entry.of(SessionUpdated(features=missing))], actor=actor)
        # Of what it has already it stores nothing, and those below it may not have it.
        _turn_on_below(child.pk, names if ended else has, actor)


def rules(conversation: Conversation) -> Sequence[LevelledRule]:
    """What the conversations above have lost of the tools of the agent that works here too. Whoever begins
    below has what its parent has then; what was lost since stands there alone."""
    if conversation.parent_id is None:
        return ()
    found: dict[str, LevelledRule] = {}
    for pk in ancestors(conversation):
        above = _ABOVE.first(pk=pk, version=conversation.agent_version_id)
        for rule in _lost(conversation, above[0]) if above is not None else ():
            found.setdefault(rule.model_dump_json(), LevelledRule(rule, Level.AGENT))
    return tuple(found.values())


def _lost(conversation: Conversation, above: Mapping[str, Any]) -> Iterator[ToolRule]:
    own = conversation.overrides
    if all(above.get(name) == own.get(name) for name in _OF_TOOLS):
        return
    here = conversation.config
    there = _config_with(conversation, {name: above[name] for name in _OF_TOOLS if name in above})
    for rule in there.tools:
        if rule.permission != "always_allow" and rule not in here.tools:
            yield rule
    names = {tool.name for tool in there.custom_tools}
    for tool in here.custom_tools:
        if tool.name not in names:
            yield ToolRule(tool=tool.name, permission="always_deny")
    uses = {use.name: use for use in there.mcp_servers}
    for use in here.mcp_servers:
        if not _is_within(use, uses.get(use.name)):
            yield ToolRule(tool=f"mcp:{use.name}:*", permission="always_deny")


def _config_with(conversation: Conversation, overrides: Mapping[str, Any]) -> AgentConfig:
    return read_config({**conversation.agent_version.stored_config, **overrides})


def _is_within(use: McpUse, above: McpUse | None) -> bool:
    """Whether a server's tools are all among those above. Where some are not, no rule can name the others,
    of which there may be any: then none of them is called."""
    if above is None or above.tools is None:
        return above is not None
    return use.tools is not None and set(use.tools) <= set(above.tools)
