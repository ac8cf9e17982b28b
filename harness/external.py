"""Tools whose calls are answered outside this server: custom tools, a front end's, questions to people.

Such a call is stored as `agent.custom_tool_use` and the run rests; whoever knows the answer appends
`user.custom_tool_result`. Who may do that is decided in `conversations.actions`; nothing runs here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from harness.agentconfig import CustomTool
from harness.errors import InvalidToolInput, ToolError
from harness.events import AgentCustomToolUse
from harness.frontends import OfferedTool
from harness.tools import Effect, Tool, ToolContext, check_input_aside

CUSTOM = "custom"
"""The owner of tools that an agent's configuration declares."""
FRONT_END = "front end"
"""The owner of tools that come with a person's words."""


def never_runs(_context: ToolContext, _arguments: dict[str, Any]) -> str:
    """The handler of every external tool. Raises `ToolError`: its answer does not come from here."""
    raise ToolError("This tool is answered from outside; it cannot be run here.")


def tool_of(declared: CustomTool | OfferedTool) -> Tool:
    """A declared tool as the catalogue would hold it. It reaches outside: nobody knows what its
    program does, so plan mode does not offer it."""
    return Tool(
        name=declared.name,
        description=declared.description,
        input_schema=declared.input_schema,
        handler=never_runs,
        effect=Effect.OUTSIDE,
        owner=CUSTOM if isinstance(declared, CustomTool) else FRONT_END,
        external=True,
    )


async def fault_of(
    use: AgentCustomToolUse, tool: Tool | None, offload: Callable[..., Awaitable[Any]]
) -> str:
    """Why a call is answered with an error instead of being shown to anybody; empty: it is sound."""
    if use.invalid_input:
        return f"The arguments were not a JSON object: {use.invalid_input[:500]}"
    if tool is None and use.of_front_end:
        return ""  # it was sound when it was made; the front end has put the tool away since
    if tool is None:
        return f"There is no tool called {use.name}."
    try:
        await check_input_aside(tool, use.input, offload)
    except InvalidToolInput as problem:
        return problem.message
    return ""
