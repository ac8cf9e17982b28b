"""Tools of MCP servers that are too many to tell a model of: it looks for them, and calls what it found.

A found tool is called by a call of `use_tool`, and judged, asked about and stored as if the model had called
it: no request to a model changes its tools for it, so that what is cached of prompts stays. Whether they are
too many is a question of their size beside the model's window.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from django.conf import settings

from harness.errors import ToolError
from harness.estimates import CHARACTERS_PER_TOKEN
from harness.tools import Effect, Tool, ToolContext, ToolOutput

FIND, USE = "find_tools", "use_tool"
MOST_FOUND = 8
LONGEST_QUERY = 500
LONGEST_TOLD = 30_000
"""Characters of what is told of found tools; of what is longer only the name."""
_WORD = re.compile(r"[^\W_]+")


def size_of(tool: Tool) -> int:
    """Characters that a request carries for it."""
    return len(tool.name) + len(tool.description) + len(json.dumps(tool.input_schema))


def are_too_many(characters: int, window: int) -> bool:
    """`window`: tokens that the model takes."""
    share: int = settings.AGENTSITE_MCP_TOOLS_SHARE
    return characters / CHARACTERS_PER_TOKEN * 100 > window * share


def deferred(tools: Mapping[str, Tool]) -> dict[str, Tool]:
    """The same, of which no model is told, and the two by which it gets at them."""
    held = {name: replace(tool, within_only=True) for name, tool in tools.items()}
    find = Tool(
        name=FIND,
        description="Looks for tools of MCP servers by what they do; answers with their names, "
        f"descriptions and schemas, the best first. Call one with {USE}.",
        input_schema={
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": LONGEST_QUERY,
                    "description": "Words for what the tool should do, or a part of its name.",
                }
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        handler=partial(_find, held),
        effect=Effect.READ,
        owner="mcp",
        granted=True,
        intent=lambda given: str(given.get("query", "")),
    )
    use = Tool(
        name=USE,
        description=f"Calls a tool that {FIND} told of.",
        input_schema={
            "type": "object",
            "properties": {
                "tool": {"type": "string", "description": "Its name, beginning with mcp__."},
                "input": {"type": "object", "description": "As its schema says."},
            },
            "required": ["tool", "input"],
            "additionalProperties": False,
        },
        handler=partial(_use, frozenset(held)),
        effect=Effect.READ,
        owner="mcp",
        granted=True,
        composed=True,
        timeout=max((tool.timeout for tool in held.values()), default=120.0) + 5,
        intent=lambda given: str(given.get("tool", "")),
    )
    return {**held, FIND: find, USE: use}


def _find(tools: Mapping[str, Tool], _context: ToolContext, given: Mapping[str, Any]) -> str:
    wanted = set(_words(given["query"]))
    ranked = sorted(
        ((_score(tool, wanted), name) for name, tool in tools.items()),
        key=lambda pair: (-pair[0], pair[1]),
    )
    found = [name for score, name in ranked if score > 0][:MOST_FOUND]
    if not found:
        servers = sorted({tool.mcp_server for tool in tools.values()})
        raise ToolError(
            f"No tool fits. There are {len(tools)} of these servers: {', '.join(servers)}.",
            hint="Try other words, or the name of a server.",
        )
    lines: list[str] = []
    room = LONGEST_TOLD
    for name in found:
        tool = tools[name]
        told = json.dumps(
            {"name": name, "description": tool.description, "input_schema": tool.input_schema},
            ensure_ascii=False,
        )
        room -= len(told)
        lines.append(told if room > 0 else json.dumps({"name": name}))
    return "\n".join(lines)


async def _use(names: frozenset[str], context: ToolContext, given: Mapping[str, Any]) -> ToolOutput:
    if given["tool"] not in names:
        raise ToolError("There is no such tool of a server.", hint=f"Look with {FIND}.")
    answer = await context.call_tool(given["tool"], given["input"])
    return ToolOutput(answer.content, is_error=answer.is_error)


def _score(tool: Tool, wanted: set[str]) -> int:
    """A word of the name counts more than one of the description."""
    named, told = set(_words(tool.name)), set(_words(tool.description))
    hits = sum(4 * (word in named) + (word in told) for word in wanted)
    return hits + sum(2 for word in wanted if len(word) > 3 and word in tool.name.casefold())


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
