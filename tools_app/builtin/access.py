"""How the built-in tools reach files: the call's workspace, and errors put in words for the model.

What is allowed is decided by `tools_app.workspace`; which call may run at all by `harness.policy`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from harness.errors import Declined, LimitReached, ToolError
from harness.tools import ToolContext, ToolOutput
from tools_app.workspace import PUBLIC_ROOT, Workspace, inside

PlainHandler = Callable[[ToolContext, dict[str, Any]], ToolOutput | str]

PATH = {
    "type": "string",
    "minLength": 1,
    "maxLength": 1_024,
    "description": "Path relative to the workspace, for example “src/app.py”; "
    f"“{PUBLIC_ROOT}/…” means the same.",
}
FOLDER = {
    "type": "string",
    "maxLength": 1_024,
    "description": "Folder relative to the workspace; left out: the whole workspace.",
}


def refusals_for_model(handler: PlainHandler) -> PlainHandler:
    """The handler with refusals meant for an asker raised as `ToolError`: here the model asks. A path
    may be given as commands see it."""

    @wraps(handler)
    def wrapped(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput | str:
        path = arguments.get("path")
        if isinstance(path, str):
            arguments = {**arguments, "path": inside(context.workspace, path)}
        try:
            return handler(context, arguments)
        except (Declined, LimitReached) as problem:
            raise ToolError(problem.message, hint=problem.hint) from problem

    return wrapped


def workspace_of(context: ToolContext) -> Workspace:
    return Workspace(context.workspace)


def path_of(arguments: Mapping[str, Any]) -> str:
    """The path a call is about, for its card."""
    return str(arguments.get("path", ""))


def pattern_of(arguments: Mapping[str, Any]) -> str:
    """The pattern a call is about, and where, for its card."""
    pattern, path = str(arguments.get("pattern", "")), path_of(arguments)
    return f"{pattern} · {path}" if path else pattern
