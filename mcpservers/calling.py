"""One call of a tool of an MCP server: whether it may still be made as the tables say, and what came of it.

Heavy, for the official client: imported when a run first has such tools (`kitpart`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from mcp_types import CallToolResult, InputRequiredResult

from conversations.models import Conversation
from harness.errors import AgentError, ToolError
from harness.tools import ToolContext, ToolOutput
from tools_app.web.credentials import EXTRA as CREDENTIALS

from .connecting import Connected, Lapsed, connected_in, token_of, want_more
from .listing import Described, note_failure, take_listing
from .models import McpServer, McpTool
from .places import is_covered
from .results import blocks_of, fault_in
from .secrets import headers_of
from .sessions import Listing, Unreachable, Where, sessions
from .transport import Challenge
from .whose import is_hers_alone


@dataclass(frozen=True, slots=True)
class _Plan:
    where: Where
    tool: str
    seconds: float
    pinned: Described
    server: str
    connected: Connected | None = None
    """The owner's own account there."""


CONNECT_ANEW = (
    "Tell the person: she can connect on the page of the server, under Settings, MCP servers. Then it "
    "can be called again."
)


async def call(
    tool_id: int, digest: str, context: ToolContext, arguments: Mapping[str, object]
) -> ToolOutput:
    """Raises ToolError with the reason for the model."""
    uid = str(context.extras["conversation"])
    plan: _Plan = await context.offload(_plan, tool_id, digest, uid)
    where, connected = await _authorised(plan, context)

    async def told(listing: Listing) -> None:
        await context.offload(_keep, plan.where.server_id, listing, connected is None)
        await context.offload(_plan, tool_id, digest, uid)

    async def once(where: Where) -> CallToolResult | InputRequiredResult:
        return await sessions.call(
            where, plan.tool, arguments, seconds=plan.seconds, on_listing=told
        )

    try:
        try:
            result = await once(where)
        except Unreachable as problem:
            # It refused the token before it did anything, so with another one it is asked once more.
            token = await _renewed(connected, where, problem)
            if not token:
                raise
            where = where.authorised_by(token)
            result = await once(where)
    except TimeoutError:
        raise ToolError(
            f"{plan.server} did not answer within {plan.seconds:g} seconds. Whether it did its work is "
            "not known."
        ) from None
    except Unreachable as problem:
        if problem.challenge is not None:
            raise await _unauthorised(plan, connected, problem.challenge, context) from None
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


async def _authorised(plan: _Plan, context: ToolContext) -> tuple[Where, Connected | None]:
    """A credential that the person lent the conversation goes before her connection, and that before the
    server's own."""
    lent = context.extras.get(CREDENTIALS)
    bearer = await lent.bearer_for(plan.where.url) if lent is not None else ""
    if bearer:
        return plan.where.authorised_by(bearer), None
    if plan.connected is None:
        return plan.where, None
    try:
        return plan.where.authorised_by(await token_of(plan.connected)), plan.connected
    except Lapsed:
        raise ToolError(
            f"What the person allowed at “{plan.server}” is over.", hint=CONNECT_ANEW
        ) from None


async def _renewed(connected: Connected | None, where: Where, problem: Unreachable) -> str:
    """A token in place of one that was refused; empty: there is none."""
    if connected is None or problem.challenge is None or problem.challenge.status != 401:
        return ""
    stale = where.headers["Authorization"].removeprefix("Bearer ")
    try:
        token = await token_of(connected, stale=stale)
    except Lapsed:
        return ""
    return "" if token == stale else token


async def _unauthorised(
    plan: _Plan, connected: Connected | None, challenge: Challenge, context: ToolContext
) -> ToolError:
    server = plan.server
    if challenge.more and connected is not None:
        if await context.offload(want_more, connected.connection_id, challenge.scope):
            return ToolError(
                f"“{server}” wants the person to allow more: {challenge.scope[:300]}.",
                hint=CONNECT_ANEW,
            )
        return ToolError(f"“{server}” does not let the person's account do this.")
    words = f"It wants other credentials ({challenge.status})."
    unauthorised = challenge.status == 401
    note = partial(note_failure, plan.where.server_id, words, unauthorised=unauthorised)
    await context.offload(note)
    if unauthorised:
        return ToolError(
            f"“{server}” wants the person to connect an account of hers.", hint=CONNECT_ANEW
        )
    return ToolError(f"The MCP server “{server}” refused the call: {words}")


def _keep(server_id: int, listing: Listing, whole: bool) -> None:
    take_listing(
        server_id,
        listing.tools,
        protocol=listing.protocol,
        software=listing.software,
        whole=whole,
    )


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
        connected_in(conversation, server),
    )
