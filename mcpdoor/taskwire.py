"""The Tasks extension on the wire: who may ask for one, what its id and headers must be, how it is told.

What a task is, and whether it is this person's, its part says (`parts`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .parts import Context, Method, Part, Task, can
from .tools import Principal

EXTENSION = "io.modelcontextprotocol/tasks"
MOST_ANSWERS = 50


class TaskParams(types.RequestParams):
    task_id: str


class UpdateParams(TaskParams):
    input_responses: dict[str, Any]


def created(task: Task) -> dict[str, Any]:
    """The answer to a call that goes on as a task; only for clients that can (`takes_tasks`)."""
    return {"resultType": "task", **_common(task)}


def takes_tasks(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS and can(context, EXTENSION)


def missing(**capabilities: dict[str, Any]) -> MCPError:
    """The client would have to say of itself that it can this."""
    return MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        "Missing required client capability",
        {"requiredCapabilities": capabilities},
    )


def task_methods(parts: Sequence[Part], speaker: Callable[[], Principal]) -> Mapping[str, Method]:
    async def get(context: Context, params: TaskParams) -> dict[str, Any]:
        _require_asked_well(context, params.task_id)
        for part in parts:
            if (task := await part.task(speaker(), context, params.task_id)) is not None:
                return detailed(task)
        raise _no_task()

    async def update(context: Context, params: UpdateParams) -> dict[str, Any]:
        _require_asked_well(context, params.task_id)
        if len(params.input_responses) > MOST_ANSWERS:
            raise MCPError(types.INVALID_PARAMS, f"inputResponses: at most {MOST_ANSWERS}")

        async def give(part: Part) -> bool:
            return await part.answer_task(
                speaker(), context, params.task_id, params.input_responses
            )

        return await _acknowledged(parts, give)

    async def cancel(context: Context, params: TaskParams) -> dict[str, Any]:
        _require_asked_well(context, params.task_id)

        async def end(part: Part) -> bool:
            return await part.cancel_task(speaker(), context, params.task_id)

        return await _acknowledged(parts, end)

    return {
        "tasks/get": Method(TaskParams, get),
        "tasks/update": Method(UpdateParams, update),
        "tasks/cancel": Method(TaskParams, cancel),
    }


async def _acknowledged(
    parts: Sequence[Part], act: Callable[[Part], Awaitable[bool]]
) -> dict[str, Any]:
    for part in parts:
        if await act(part):
            return {"resultType": "complete"}
    raise _no_task()


def _require_asked_well(context: Context, uid: str) -> None:
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)
    if not takes_tasks(context):
        raise missing(extensions={EXTENSION: {}})
    if context.request is None:
        return
    named = decode_header_value(context.request.headers.get(MCP_NAME_HEADER))
    if named != uid:
        words = f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
        raise MCPError(types.HEADER_MISMATCH, words)


def _no_task() -> MCPError:
    return MCPError(types.INVALID_PARAMS, "Task not found")


def detailed(task: Task) -> dict[str, Any]:
    """The answer to `tasks/get`."""
    told = {"resultType": "complete", **_common(task)}
    match task.status:
        case "completed":
            told["result"] = task.result or {"content": []}
        case "failed":
            told["error"] = task.error or {"code": types.INTERNAL_ERROR, "message": "It failed"}
        case "input_required":
            told["inputRequests"] = dict(task.requests)
    return told


def _common(task: Task) -> dict[str, Any]:
    told: dict[str, Any] = {
        "taskId": task.uid,
        "status": task.status,
        "createdAt": _written(task.created),
        "lastUpdatedAt": _written(task.updated),
        "ttlMs": task.ttl,
        "pollIntervalMs": task.poll,
    }
    if task.message:
        told["statusMessage"] = task.message
    return told


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
