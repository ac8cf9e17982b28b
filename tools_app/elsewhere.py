"""The tools of environments whose commands and files are on a worker's machine, not on this server.

Agents, rules and people know them by the same names and arguments as the built-in ones, so that a rule
holds wherever the work is done; `handed_out` says how a worker of the public protocol knows the call.
Who takes a call and answers it is `workers.items`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.errors import ToolError
from harness.tools import Effect, Tool, ToolContext

MOST_SECONDS = 120
"""Of one command: workers give a call not much longer."""
TEXT = 200_000
PATTERN = 1_000

_STAYS_HERE = frozenset(
    {
        "ask_user",
        "calculator",
        "compact",
        "continue_later",
        "present_plan",
        "read_events",
        "session_memory_read",
        "session_memory_write",
        "think",
        "todo_add",
        "todo_complete",
        "todo_list",
        "todo_write",
        "web_fetch",
        "web_search",
    }
)
"""Built-in tools that need no workspace. A list of what stays, not of what goes: a new tool of the
workspace must not work on the wrong disk because nobody thought of this."""

_PATH = {
    "type": "string",
    "minLength": 1,
    "maxLength": 1_000,
    "description": "Relative to the working directory.",
}


def _never_runs(_context: ToolContext, _arguments: dict[str, Any]) -> str:
    raise ToolError("This tool is carried out by a worker; it cannot be run here.")


def _bash(given: Mapping[str, Any]) -> dict[str, Any]:
    in_their_words = {name: given[name] for name in ("command", "restart") if name in given}
    if "timeout" in given:
        in_their_words["timeout_ms"] = round(given["timeout"] * 1_000)
    return in_their_words


def _read(given: Mapping[str, Any]) -> dict[str, Any]:
    in_their_words: dict[str, Any] = {"file_path": given["path"]}
    if "start_line" in given or "end_line" in given:
        in_their_words["view_range"] = [given.get("start_line", 1), given.get("end_line", -1)]
    return in_their_words


def _renamed(**names: str) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """The same arguments under other names: theirs = ours."""

    def in_their_words(given: Mapping[str, Any]) -> dict[str, Any]:
        return {theirs: given[ours] for theirs, ours in names.items() if ours in given}

    return in_their_words


def _tool(
    name: str,
    description: str,
    properties: Mapping[str, Any],
    required: tuple[str, ...],
    *,
    known_as: str,
    in_their_words: Callable[[Mapping[str, Any]], dict[str, Any]],
    intent: str,
    **more: Any,
) -> Tool:
    return Tool(
        name=name,
        description=description,
        input_schema={
            "type": "object",
            "properties": dict(properties),
            "required": list(required),
            "additionalProperties": False,
        },
        handler=_never_runs,
        intent=lambda given: str(given.get(intent, "")),
        handed_out=lambda given: (known_as, in_their_words(given)),
        **more,
    )


TOOLS: tuple[Tool, ...] = (
    _tool(
        "bash",
        "Run a command in a shell that stays open on the machine where this conversation's files are; "
        "folder and variables last from call to call. There is no terminal and no input: use options "
        "such as -y.",
        {
            "command": {
                "type": "string",
                "minLength": 1,
                "maxLength": 60_000,
                "description": "What to run; several lines are allowed. Left out only with restart.",
            },
            "timeout": {
                "type": "number",
                "minimum": 1,
                "maximum": MOST_SECONDS,
                "description": f"Seconds after which it is given up. Default: {MOST_SECONDS}.",
            },
            "restart": {
                "type": "boolean",
                "description": "Begin with a new shell instead of running a command.",
            },
        },
        (),
        known_as="bash",
        in_their_words=_bash,
        intent="command",
        # Nobody here knows what that machine reaches.
        effect=Effect.OUTSIDE,
        destructive=True,
        general=True,
        untrusted=True,
    ),
    _tool(
        "read_file",
        "Read a text file, a picture or a PDF. Large texts are read in pieces, by lines.",
        {
            "path": _PATH,
            "start_line": {
                "type": "integer",
                "minimum": 1,
                "description": "First line, counting from 1. Default: 1.",
            },
            "end_line": {
                "type": "integer",
                "minimum": 1,
                "description": "Last line, included. Default: the last one.",
            },
        },
        ("path",),
        known_as="read",
        in_their_words=_read,
        intent="path",
        effect=Effect.READ,
        idempotent=True,
        untrusted=True,
    ),
    _tool(
        "write_file",
        "Create a text file, or replace the whole content of one. Missing folders are made. To change a "
        "part of a file use edit_file.",
        {
            "path": _PATH,
            "content": {
                "type": "string",
                "maxLength": TEXT,
                "description": "The whole new content, stored as UTF-8.",
            },
        },
        ("path", "content"),
        known_as="write",
        in_their_words=_renamed(file_path="path", content="content"),
        intent="path",
        effect=Effect.WORKSPACE,
        idempotent=True,
        destructive=True,
    ),
    _tool(
        "edit_file",
        "Replace one piece of text in a file. old_text must occur exactly once, so include enough of its "
        "surroundings; it is taken literally, and so is new_text. Read the file first.",
        {
            "path": _PATH,
            "old_text": {
                "type": "string",
                "minLength": 1,
                "maxLength": TEXT,
                "description": "The text to replace, exactly as it stands in the file.",
            },
            "new_text": {
                "type": "string",
                "maxLength": TEXT,
                "description": "What stands there afterwards; empty to remove it.",
            },
        },
        ("path", "old_text", "new_text"),
        known_as="edit",
        in_their_words=_renamed(file_path="path", old_string="old_text", new_string="new_text"),
        intent="path",
        effect=Effect.WORKSPACE,
        destructive=True,
    ),
    _tool(
        "glob",
        "Find files by name, newest first. “*” stands for anything within a name, “**” for any number of "
        "folders.",
        {
            "pattern": {
                "type": "string",
                "minLength": 1,
                "maxLength": PATTERN,
                "description": "For example “*.md” or “src/**/test_*.py”.",
            },
            "path": {
                **_PATH,
                "description": "The folder to look in. Default: the working directory.",
            },
        },
        ("pattern",),
        known_as="glob",
        in_their_words=_renamed(pattern="pattern", path="path"),
        intent="pattern",
        effect=Effect.READ,
        idempotent=True,
        untrusted=True,
    ),
    _tool(
        "grep",
        "Search the contents of files for a regular expression, line by line.",
        {
            "pattern": {
                "type": "string",
                "minLength": 1,
                "maxLength": PATTERN,
                "description": "A regular expression.",
            },
            "path": {**_PATH, "description": "A file or folder. Default: the working directory."},
        },
        ("pattern",),
        known_as="grep",
        in_their_words=_renamed(pattern="pattern", path="path"),
        intent="pattern",
        effect=Effect.READ,
        idempotent=True,
        untrusted=True,
    ),
)


def tools_elsewhere(tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
    """Of all `tools`, those that an agent has whose files and commands are on a worker's machine."""
    here = {
        name: tool
        for name, tool in tools.items()
        if tool.owner != "agentsite" or name in _STAYS_HERE
    }
    return {**here, **{tool.name: tool for tool in TOOLS}}


def edition_of(name: str) -> Tool | None:
    """The tool of this name as workers have it; None for one that they do not have."""
    return next((tool for tool in TOOLS if tool.name == name), None)
