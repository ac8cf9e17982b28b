"""One call of a tool of an MCP server: whether it may still be made as the tables say, and what came of it.

Heavy, for the official client: imported when a run first has such tools (`kitpart`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mcp_types import InputRequiredResult

from conversations.models import Conversation
from harness.errors import AgentError, ToolError
from harness.tools import ToolContext, ToolOutput
from tools_app.web.credentials import EXTRA as CREDENTIALS

from .listing import Described, note_failure, take_listing
from .models import McpServer, McpTool
from .places import is_covered
from .results import blocks_of, fault_in
from .secrets import headers_of
from .sessions import Listing, Unreachable, Where, sessions
from .whose import is_hers_alone


@dataclass(frozen=True, slots=True)
class _Plan:
    where: Where
    tool: str
    seconds: float
    pinned: Described
    server: str


async def call(
    tool_id: int, digest: str, context: ToolContext, arguments: Mapping[str, object]
) -> ToolOutput:
    """Raises ToolError with the reason for the model."""
    uid = str(context.extras["conversation"])
    plan: _Plan = await context.offload(_plan, tool_id, digest, uid)
    where = await _authorised(plan.where, context)

    async def told(listing: Listing) -> None:
        await context.offload(_keep, plan.where.server_id, listing)
        await context.offload(_plan, tool_id, digest, uid)

    try:
        result = await sessions.call(
            where, plan.tool, arguments, seconds=plan.seconds, on_listing=told
        )
    except TimeoutError:
        raise ToolError(
            f"{plan.server} did not answer within {plan.seconds:g} seconds. Whether it did its work is "
            "not known."
        ) from None
    except Unreachable as problem:
        await context.offload(note_failure, plan.where.server_id, str(problem))
        raise ToolError(
            f"The MCP server “{plan.server}” failed: {problem}",
            hint="Go on without it, or tell the person; its page says more.",
        ) from None
    if isinstance(result, InputRequiredResult):
        raise ToolError(f"“{plan.server}” wants to ask something first, which it cannot do here.")
    if fault := await context.offload(fault_in, result, plan.pinned.output_schema):
        raise ToolError(f"The answer of “{plan.server}” was not taken. {fault}")
    blocks = await context.offload(blocks_of, result, where.without_secrets)
    return ToolOutput(
        blocks, is_error=bool(result.is_error), untrusted=True, untrusted_by=plan.server
    )


async def _authorised(where: Where, context: ToolContext) -> Where:
    """A credential that the person lent the conversation goes before the server's own."""
    lent = context.extras.get(CREDENTIALS)
    bearer = await lent.bearer_for(where.url) if lent is not None else ""
    if not bearer:
        return where
    others = {
        name: value for name, value in where.headers.items() if name.lower() != "authorization"
    }
    headers = {**others, "Authorization": f"Bearer {bearer}"}
    return Where(where.server_id, where.conversation, where.url, headers)


def _keep(server_id: int, listing: Listing) -> None:
    take_listing(server_id, listing.tools, protocol=listing.protocol, software=listing.software)


def _plan(tool_id: int, digest: str, uid: str) -> _Plan:
    """What is called, as the tables say now. Raises ToolError where it may not be."""
    conversation = Conversation.objects.select_related("owner").get(uid=uid)
    serving = McpServer.objects.serving(conversation.organisation_id, conversation.owner_id)
    row = (
        McpTool.objects.select_related("server")
        .filter(pk=tool_id, server__in=serving.values("pk"), server__disabled_at=None)
        .first()
    )
    if row is None:
        raise ToolError("The MCP server of this tool was taken away or switched off.")
    if row.server.owner_id is not None and not is_hers_alone(conversation):
        raise ToolError(
            "The MCP server of this tool is one person's own, and others may write in this conversation.",
            hint="Go on without it.",
        )
    if is_covered(row.server, serving):
        raise ToolError(
            "There is a server of the organisation, or of everybody, at the address of this one.",
            hint="Use the tools of that one.",
        )
    if row.state != McpTool.State.RELEASED or row.digest != digest:
        raise ToolError(
            f"{row.name} is held: its server describes it otherwise than when it was released, or no "
            "longer has it.",
            hint="Tell the person: whoever manages the server sees the difference on its page.",
        )
    server = row.server
    try:
        headers = headers_of(server)
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from None
    return _Plan(
        Where(server.pk, uid, server.url, headers),
        row.remote_name,
        float(server.timeout_seconds),
        Described.model_validate(row.pinned),
        server.name,
    )
