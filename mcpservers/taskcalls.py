"""Calls that an MCP server answers with a task (the extension Tasks, 2026-07-28), followed to an answer.

The call goes on as any other: within its seconds, stopped by a stop, which is told to the server, and put
down when the task asks a person something. Which task it was is then in what is kept for the question.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, ClassVar, Literal

import anyio
from mcp import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolResult,
    InputRequiredResult,
    Request,
    RequestParams,
    Result,
    TextContent,
)
from pydantic import Field

EXTENSION = "io.modelcontextprotocol/tasks"
LEAST_SECONDS, USUAL_SECONDS, MOST_SECONDS = 0.1, 1.0, 10.0
"""Between two looks at a task, whatever its server says."""
MOST_ID = 500
CANCEL_SECONDS = 5.0
_KEPT = "agentsite-task:"
"""How what is kept for a question of a task begins. It goes back to the server that asked alone."""

Answer = CallToolResult | InputRequiredResult
_ending: set[asyncio.Task[None]] = set()
_CLOSED = (anyio.ClosedResourceError, anyio.BrokenResourceError)


class TaskBegun(Result):
    result_type: Literal["task"]
    """Said by the server: else an answer with a field of the name `taskId` would be one."""
    task_id: str = Field(max_length=MOST_ID)
    poll_interval_ms: float | None = None


class _TaskStands(Result):
    result_type: str | None = None
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = None
    poll_interval_ms: float | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: dict[str, Any] | None = None


class _TaskParams(RequestParams):
    task_id: str


class _UpdateParams(_TaskParams):
    input_responses: dict[str, Any]


class _Get(Request[_TaskParams, Literal["tasks/get"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/get"] = "tasks/get"


class _Update(Request[_UpdateParams, Literal["tasks/update"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/update"] = "tasks/update"


class _Cancel(Request[_TaskParams, Literal["tasks/cancel"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"


class Tasks(ClientExtension):
    """That we take them: said to servers that may answer so, of the revisions that know it."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskBegun, resolve=_never)]


async def _never(_begun: TaskBegun, _context: ClaimContext) -> CallToolResult:
    raise RuntimeError("tools are called by `sessions`, which follows what came of it")


def is_of_task(state: str) -> bool:
    """Whether what was kept is that of a task, so that its answers go there and nothing is called again."""
    return state.startswith(_KEPT)


def state_of(begun: TaskBegun) -> str:
    """What is kept, to go on with a task that was begun."""
    return f"{_KEPT}{begun.task_id}"


async def give(client: Client, state: str, responses: Mapping[str, Any]) -> None:
    """Tell a task what people answered."""
    uid = state.removeprefix(_KEPT)
    params = _UpdateParams(task_id=uid, input_responses=dict(responses))
    await client.session.send_request(_Update(params=params), Result)


async def follow(client: Client, state: str, poll: float | None = None) -> Answer:
    """Until it has ended, or asks. Whoever is cancelled meanwhile has it cancelled there."""
    uid = state.removeprefix(_KEPT)
    try:
        while True:
            await asyncio.sleep(pause_after(poll))
            request = _Get(params=_TaskParams(task_id=uid))
            stands = await client.session.send_request(request, _TaskStands)
            if (answer := _answer_of(stands, uid)) is not None:
                return answer
            poll = stands.poll_interval_ms
    except asyncio.CancelledError:
        ending = asyncio.create_task(_cancel(client, uid))
        _ending.add(ending)
        ending.add_done_callback(_ending.discard)
        raise


def _answer_of(stands: _TaskStands, uid: str) -> Answer | None:
    match stands.status:
        case "completed":
            return CallToolResult.model_validate(stands.result or {}, by_name=False)
        case "failed":
            said = (stands.error or {}).get("message") or stands.status_message
            return _failed(f"The task failed: {said or 'its server does not say why'}")
        case "cancelled":
            return _failed("The task was cancelled by its server.")
        case "input_required":
            asked = {"inputRequests": stands.input_requests or {}, "requestState": f"{_KEPT}{uid}"}
            return InputRequiredResult.model_validate(asked, by_name=False)
    return None


def _failed(words: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=words[:4_000])], is_error=True)


def pause_after(poll: float | None) -> float:
    """Seconds to the next look, for the milliseconds that a server names."""
    # A text may say that it is no number.
    seconds = USUAL_SECONDS if poll is None or isnan(poll) else poll / 1_000
    return min(max(seconds, LEAST_SECONDS), MOST_SECONDS)


async def _cancel(client: Client, uid: str) -> None:
    try:
        async with asyncio.timeout(CANCEL_SECONDS):
            request = _Cancel(params=_TaskParams(task_id=uid))
            await client.session.send_request(request, Result)
    except (MCPError, TimeoutError, OSError, RuntimeError, ValueError, *_CLOSED):
        pass  # it ends there by itself, or not
