"""One call of a tool of an MCP server: whether it may still be made as the tables say, and what came of it.

Heavy, for the official client: imported when a run first has such tools (`kitpart`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from mcp_types import CallToolResult, InputRequiredResult

from conversations.models import Conversation
from harness.errors import AgentError, ToolError
from harness.tools import ToolContext, ToolOutput
from tools_app.builtin.shell import access_of
from tools_app.provenance import provenance_of
from tools_app.tracing import HEADER, traceparent_of
from tools_app.web.credentials import EXTRA as CREDENTIALS

from .asking import (
    ACCOUNT,
    ASK,
    MOST_ROUNDS,
    MOST_STATE,
    Kept,
    is_declined,
    keep,
    kept_of,
    responses_in,
)
from .connecting import Connected, Lapsed, connected_in, token_of, want_more
from .counting import count_call
from .elicitation import Asked, Refused, read_asked
from .listing import Described, note_failure, take_listing
from .models import McpQuestion, McpTool
from .places import is_covered
from .programs import in_conversation, mark_workspace, require_programs
from .results import blocks_of, fault_in
from .secrets import headers_of
from .sessions import Listing, Unreachable, Where, sessions
from .transport import Challenge
from .whose import is_hers_alone, serving_in


@dataclass(frozen=True, slots=True)
class _Plan:
    where: Where
    tool_id: int
    tool: str
    seconds: float
    pinned: Described
    server: str
    place: str
    connected: Connected | None = None
    """The owner's own account there."""
    may_connect: bool = False
    """She can be asked to connect one in this conversation."""
    argv: tuple[str, ...] = ()
    """Of a program, which finds `variables`."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)


class _WantsAccount(ToolError):
    """The server refused for want of what its person would allow, and did nothing."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint=CONNECT_ANEW)


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
    attempt = _Attempt(plan, context, uid, partial(_plan, tool_id, digest, uid))
    await attempt.tell_again()
    result = await attempt.go_on(arguments)
    where = attempt.where
    if fault := await context.offload(_taken, plan, result, attempt.seconds):
        raise ToolError(f"The answer of “{plan.server}” was not taken. {fault}")
    blocks = await context.offload(blocks_of, result, where.without_secrets)
    return ToolOutput(
        blocks, is_error=bool(result.is_error), untrusted=True, untrusted_by=plan.server
    )


def _taken(plan: _Plan, result: CallToolResult, seconds: float) -> str:
    """Counts an answer; why it is not taken, empty: it is."""
    fault = fault_in(result, plan.pinned.output_schema)
    failure = McpTool.Failure.UNSOUND if fault else None
    if result.is_error:
        failure = McpTool.Failure.SAID
    count_call(plan.tool_id, seconds, failure)
    return fault


class _Attempt:
    """One call from its beginning, with what was asked and answered before it was put down."""

    def __init__(
        self, plan: _Plan, context: ToolContext, uid: str, planned: Callable[[], _Plan]
    ) -> None:
        self.plan = plan
        self.where = plan.where
        self._context = context
        self._uid = uid
        self._planned = planned
        self._rounds = 0
        self._connects = False
        """The person was asked to connect an account."""
        self._responses: dict[str, object] | None = None
        self._state = ""
        self.seconds = 0.0
        """That the server took, without what people took to answer it."""

    async def tell_again(self) -> None:
        """What was asked in this call before, in the same order, with its answers. The last may be new.
        Raises ToolError where the server is elsewhere by now: it was answered for the place that asked."""
        for kept in await self._context.offload(kept_of, self._uid, self._context.call_id):
            if kept.place != self.plan.place:
                raise ToolError(
                    f"“{self.plan.server}” is at another place than when it asked, so the answer was not "
                    "sent there. Whether the call did anything before is not known.",
                    hint="Check before you call it again.",
                )
            await self._ask(kept)

    async def go_on(self, arguments: Mapping[str, object]) -> CallToolResult:
        """Until the server has an answer, or a person is to be asked: then `PutDown` is raised."""
        while True:
            result = await self._sent(arguments)
            if isinstance(result, CallToolResult):
                return result
            try:
                wire = result.model_dump(mode="json", by_alias=True, exclude_none=True)
                asked = read_asked(wire["inputRequests"]) if wire.get("inputRequests") else {}
            except Refused as problem:
                raise ToolError(f"“{self.plan.server}” was not answered. {problem}") from None
            state = result.request_state or ""
            if self._rounds >= MOST_ROUNDS or len(state) > MOST_STATE:
                raise ToolError(f"“{self.plan.server}” asks too much before it answers.")
            if not asked:
                self._rounds += 1
                self._responses, self._state = {}, state
                continue
            await self._question(McpQuestion.Kind.INPUT, asked, state)

    async def _question(
        self, kind: McpQuestion.Kind, asked: Mapping[str, Asked], state: str
    ) -> None:
        kept = partial(
            keep,
            self._uid,
            self._context.call_id,
            self.plan.where.server_id,
            self.plan.place,
            self._rounds,
            kind,
            asked,
            state,
        )
        await self._ask(await self._context.offload(kept))

    async def _ask(self, kept: Kept) -> None:
        answer = await self._context.call_tool(ASK, kept.given)
        self._rounds = max(self._rounds, kept.round) + 1
        if kept.kind != McpQuestion.Kind.CONNECT:
            self._responses, self._state = responses_in(answer, kept), kept.state
            return
        self._connects = True
        if kept.state:
            self._responses, self._state = None, kept.state
        if is_declined(answer):
            raise ToolError(f"The person does not connect an account at “{self.plan.server}”.")

    async def _sent(self, arguments: Mapping[str, object]) -> CallToolResult | InputRequiredResult:
        """Once it is authorised: where the person's account is wanted, she is asked to connect it."""
        try:
            return await self._tried(arguments)
        except _WantsAccount as fault:
            # The server did nothing, so it can be called when she has connected.
            if not self._connects and self.plan.may_connect:
                asked = Asked(message=f"{fault.message}")
                task = self._state if self._responses is None else ""
                await self._question(McpQuestion.Kind.CONNECT, {ACCOUNT: asked}, task)
            raise

    async def _tried(self, arguments: Mapping[str, object]) -> CallToolResult | InputRequiredResult:
        plan, context = self.plan, self._context
        self.where, connected = await _authorised(plan, context)
        trace = await traceparent_of(context)

        async def told(listing: Listing) -> None:
            await context.offload(_keep, plan.where.server_id, listing, connected is None)
            await context.offload(self._planned)

        async def once() -> CallToolResult | InputRequiredResult:
            try:
                return await sessions.call(
                    self.where,
                    plan.tool,
                    arguments,
                    seconds=plan.seconds,
                    on_listing=told,
                    responses=self._responses,
                    state=self._state,
                    told={HEADER: trace} if trace else None,
                )
            except Unreachable as problem:
                # What was begun there is followed on, and not begun again.
                if problem.task:
                    self._responses, self._state = None, problem.task
                raise

        began = time.monotonic()

        async def failed(how: McpTool.Failure) -> None:
            await context.offload(count_call, plan.tool_id, time.monotonic() - began, how)

        try:
            try:
                return await once()
            except Unreachable as problem:
                # It refused the token before it did anything, so with another one it is asked once more.
                token = await _renewed(connected, self.where, problem)
                if not token:
                    raise
                self.where = self.where.authorised_by(token)
                return await once()
        except TimeoutError:
            await failed(McpTool.Failure.LATE)
            raise ToolError(
                f"{plan.server} did not answer within {plan.seconds:g} seconds. Whether it did its work is "
                "not known."
            ) from None
        except Unreachable as problem:
            if problem.challenge is not None:
                await failed(McpTool.Failure.UNAUTHORISED)
                raise await _unauthorised(plan, connected, problem.challenge, context) from None
            await failed(McpTool.Failure.UNREACHED)
            await context.offload(note_failure, plan.where.server_id, str(problem))
            wrote = f"\nThe last that it wrote into its errors:\n{problem.errors}"
            raise ToolError(
                f"The MCP server “{plan.server}” failed: {problem}{wrote if problem.errors else ''}",
                hint="Go on without it, or tell the person; its page says more.",
            ) from None
        finally:
            self.seconds += time.monotonic() - began


async def _authorised(plan: _Plan, context: ToolContext) -> tuple[Where, Connected | None]:
    """A credential that the person lent the conversation goes before her connection, and that before the
    server's own. A program has what was declared for it and no more."""
    if plan.argv:
        if marks := provenance_of(context):
            await context.offload(mark_workspace, marks, context.call_id, plan.server)
        access = await access_of(context).by_now()
        access.require_no_problem()  # also where it runs already
        program = in_conversation(access, plan.argv, plan.variables)
        return replace(plan.where, program=program), None
    lent = context.extras.get(CREDENTIALS)
    bearer = await lent.bearer_for(plan.where.url) if lent is not None else ""
    if bearer:
        return plan.where.authorised_by(bearer), None
    if plan.connected is None:
        return plan.where, None
    try:
        return plan.where.authorised_by(await token_of(plan.connected)), plan.connected
    except Lapsed:
        raise _WantsAccount(f"What the person allowed at “{plan.server}” is over.") from None


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
            return _WantsAccount(
                f"“{server}” wants the person to allow more: {challenge.scope[:300]}."
            )
        return ToolError(f"“{server}” does not let the person's account do this.")
    words = f"It wants other credentials ({challenge.status})."
    unauthorised = challenge.status == 401
    note = partial(note_failure, plan.where.server_id, words, unauthorised=unauthorised)
    await context.offload(note)
    if unauthorised:
        return _WantsAccount(f"“{server}” wants the person to connect an account of hers.")
    return ToolError(f"The MCP server “{server}” refused the call: {words}")


def _keep(server_id: int, listing: Listing, whole: bool) -> None:
    take_listing(
        server_id,
        listing.tools,
        protocol=listing.protocol,
        software=listing.software,
        whole=whole,
        # What it has for one person is named to nobody else.
        offers=listing.offers if whole else None,
    )


def _plan(tool_id: int, digest: str, uid: str) -> _Plan:
    """What is called, as the tables say now. Raises ToolError where it may not be."""
    conversation = Conversation.objects.select_related("owner", "agent_version__base").get(uid=uid)
    serving = serving_in(conversation)
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
        if server.argv:
            require_programs()
    except AgentError as problem:
        raise ToolError(problem.message, hint=problem.hint) from None
    return _Plan(
        Where(server.pk, uid, server.url, {} if server.argv else headers),
        row.pk,
        row.remote_name,
        float(server.timeout_seconds),
        Described.model_validate(row.pinned),
        server.name,
        server.place,
        connected_in(conversation, server),
        conversation.parent_id is None and is_hers_alone(conversation),
        server.argv,
        headers if server.argv else {},
    )
