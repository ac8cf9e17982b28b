"""MCP servers that a front end hands over with a run: from that run on they are the thread's own, beside
those of its agent. What one is, and who may bring it, says `mcpservers.actions.handing`.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction

from accounts.api.authentication import Caller
from conversations.actions.conversations import change_tools, require_rest
from conversations.bearers import find_bearer
from conversations.models import Conversation
from harness.agentconfig import McpUse
from mcpservers.actions.handing import (
    Handed,
    asking,
    hand_to_conversation,
    look_ahead,
    require_agents_own,
)
from mcpservers.models import McpServer


def take_servers(caller: Caller, conversation: Conversation, given: Sequence[Handed]) -> None:
    """It connects, so outside of any transaction; the same as before are let be.

    Raises Conflict where others come than before and the thread does not rest, and as `hand_to_conversation`.
    """
    agents = {use.name: use for use in conversation.agent_version.config.mcp_servers}
    there = set(McpServer.objects.filter(conversation=conversation).values_list("name", "url"))
    fresh = [each for each in given if (each.name, each.url) not in there]
    own = [each.name for each in given if each.name not in agents]
    uses = [*agents.values(), *(McpUse(name=name) for name in own)]
    named = {name for name, _url in there}
    require_agents_own(conversation=conversation, servers=given)
    if not [each for each in fresh if each.name in own] and named == set(own):
        return
    require_rest(conversation)
    looked = look_ahead(
        actor=caller.user,
        organisation=caller.organisation,
        rows=(),
        servers=fresh,
        bearer=lambda url: find_bearer(conversation.pk, url),
    )
    overrides = {"mcp_servers": [use.model_dump(mode="json") for use in uses]}
    rules = conversation.config.tools
    if more := [rule for rule in asking(rules, own) if rule not in rules]:
        overrides["tools"] = [rule.model_dump(mode="json") for rule in (*rules, *more)]
    with transaction.atomic():
        held = change_tools(actor=caller.user, conversation=conversation, overrides=overrides)
        hand_to_conversation(
            actor=caller.user, conversation=held, servers=given, uses=own, looked=looked
        )
