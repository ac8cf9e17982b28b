"""MCP servers that the model's service calls by itself: which a run names to it, with what tools and token.

Only where the operator, the server's managers and the agent have it so; where anything is in the way the
tools are not there, and nobody calls them from here instead. Which of them rules leave is `harness.kit`'s
question.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings

from conversations.models import Conversation
from harness.errors import AgentError
from harness.kit import Admitted, RemoteOffer
from harness.messages import ToolSpec
from harness.tools import Tool
from tools_app.web.credentials import EXTRA as CREDENTIALS

from .connecting import Connected, Lapsed, connected_in, token_of
from .listing import Described
from .models import McpServer, McpTool
from .places import is_covered
from .whose import is_hers_alone, serving_in


@dataclass(frozen=True, slots=True)
class _Plan:
    url: str
    tools: frozenset[str]
    connected: Connected | None
    wants_account: bool
    """People sign in for it: without a token it answers nothing but that."""


def refusal(conversation: Conversation, server: McpServer) -> str:
    """Why no model service is told of it in this conversation; empty: one may be."""
    if not settings.AGENTSITE_MCP_THROUGH_PROVIDER:
        return "whoever runs this server does not let model services call MCP servers"
    if not server.through_provider:
        return "whoever manages it does not let model services call it"
    if not server.url.startswith("https://"):
        return "it has no https address that a model service could reach"
    if server.sealed:
        return "it wants headers, which are not given to model services"
    if not McpServer.objects.visible_to(conversation.owner).filter(pk=server.pk).exists():
        return "the person has no right to it"
    return ""


def offer_of(
    conversation: Conversation, server: McpServer, tools: Sequence[tuple[Tool, McpTool]]
) -> RemoteOffer:
    """`tools`: the released ones that the agent has, as rules speak of them."""
    described = ((tool, Described.model_validate(row.pinned)) for tool, row in tools)
    digests = {row.remote_name: row.digest for _tool, row in tools}
    return RemoteOffer(
        server.name,
        server.url,
        tuple(
            (tool, ToolSpec(row.name, row.description, {"type": "object", **row.input_schema}))
            for tool, row in described
        ),
        partial(_admit, conversation.pk, server.pk, server.url, digests),
    )


async def _admit(
    conversation_id: int,
    server_id: int,
    url: str,
    digests: Mapping[str, str],
    offload: Callable[..., Awaitable[Any]],
    extras: Mapping[str, Any],
) -> Admitted | None:
    """As the tables say now, with the token that a call from here would have."""
    plan: _Plan | None = await offload(_plan, conversation_id, server_id, digests)
    if plan is None or plan.url != url:
        return None
    lent = extras.get(CREDENTIALS)
    try:
        token = await lent.bearer_for(plan.url) if lent is not None else ""
        if not token and plan.connected is not None:
            token = await token_of(plan.connected)
    except (AgentError, Lapsed):
        return None
    if plan.wants_account and not token:
        return None
    return Admitted(plan.tools, token)


def _plan(conversation_id: int, server_id: int, digests: Mapping[str, str]) -> _Plan | None:
    rows = Conversation.objects.select_related("owner", "agent_version__base")
    conversation = rows.get(pk=conversation_id)
    serving = serving_in(conversation)
    server = serving.filter(pk=server_id, disabled_at=None).first()
    if server is None or is_covered(server, serving) or refusal(conversation, server):
        return None
    if server.owner_id is not None and not is_hers_alone(conversation):
        return None
    released = server.tools.filter(state=McpTool.State.RELEASED)
    still = {row.remote_name for row in released if digests.get(row.remote_name) == row.digest}
    connected = connected_in(conversation, server)
    return _Plan(server.url, frozenset(still), connected, server.clients.exists())
