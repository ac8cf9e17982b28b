"""What a file declares, and where a name is used.

Both read text, not meaning: they help to find one's way and prove nothing about a program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from harness.errors import ToolError
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from tools_app.builtin.access import PATH, path_of, refusals_for_model, workspace_of
from tools_app.builtin.search import (
    DEFAULT_RESULTS,
    FILE_OR_FOLDER,
    GLOB,
    MAX_RESULTS,
    SEARCHED_SIZE,
    rendered,
    search,
)
from tools_app.confinement import shown
from tools_app.isolation import IsolatedProcess, IsolationFailed, IsolationTimedOut
from tools_app.provenance import answered, whose_name
from tools_app.textfiles import decode

SECONDS = 10.0
"""How long the outline of one file may take."""
DECLARATIONS = 500
"""Lines of one outline."""

_LANGUAGES = {
    "c": "c h cc cpp cxx hh hpp hxx ino m mm java cs kt kts scala swift dart groovy",
    "go": "go",
    "javascript": "js mjs cjs jsx ts mts cts tsx vue svelte",
    "markdown": "md markdown mdx",
    "php": "php",
    "python": "py pyi pyw",
    "ruby": "rb rake gemspec",
    "rust": "rs",
    "shell": "sh bash zsh ksh",
    "sql": "sql",
}
_LANGUAGE_OF = {ending: name for name, endings in _LANGUAGES.items() for ending in endings.split()}


@refusals_for_model
def outline(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput | str:
    workspace, path = workspace_of(context), arguments["path"]
    entry = workspace.stat(path)
    text = decode(workspace.read_bytes(path, SEARCHED_SIZE))
    if text is None:
        raise ToolError(f"“{shown(path)}” is not a text file.")
    ending = PurePosixPath(path).suffix.removeprefix(".").lower()
    language = _LANGUAGE_OF.get(ending, "generic")
    try:
        with IsolatedProcess("outline", seconds=SECONDS) as process:
            found = process.ask({"language": language, "text": text.text})
    except (IsolationTimedOut, IsolationFailed) as problem:
        raise ToolError(
            f"“{shown(path)}” is too intricate to be outlined.", hint="Search in it with grep."
        ) from problem
    if not found:
        return f"No declarations found in {shown(path)}."
    lines = [
        f"{declared['line']}: {'  ' * declared['depth']}{declared['text']}"
        for declared in found[:DECLARATIONS]
    ]
    if len(found) > DECLARATIONS:
        lines.append(f"[{len(found) - DECLARATIONS:,} more are not shown.]")
    return answered(context, f"{shown(path)}:\n" + "\n".join(lines), [entry], names=False)


@refusals_for_model
def find_references(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    symbol = arguments["symbol"]
    found = search(
        workspace_of(context),
        rf"(?<![\w$]){re.escape(symbol)}(?![\w$])",
        path=arguments.get("path", ""),
        glob=arguments.get("glob", ""),
        most=arguments.get("max_results", DEFAULT_RESULTS),
        whose=partial(whose_name, context),
    )
    return answered(context, rendered(found), found.sources)


def _symbol_of(arguments: Mapping[str, Any]) -> str:
    return str(arguments.get("symbol", ""))


TOOLS = (
    Tool(
        name="outline",
        description=(
            "List the classes, functions and other declarations of a source file, or the headings "
            "of a Markdown file, with line numbers. Quicker than reading a long file to find a "
            "place in it. Files over 512 KiB are refused."
        ),
        input_schema={
            "type": "object",
            "properties": {"path": PATH},
            "required": ["path"],
            "additionalProperties": False,
        },
        handler=outline,
        effect=Effect.READ,
        apart=True,
        idempotent=True,
        intent=path_of,
        timeout=30,
    ),
    Tool(
        name="find_references",
        description=(
            "Find every place where a name is used, as a whole word with the same case. Answers "
            "with “path:line: text”. Comments and texts count too; passes over what grep does."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "symbol": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 200,
                    "description": "The name, for example “parse_path” or “Workspace”.",
                },
                "path": FILE_OR_FOLDER,
                "glob": GLOB,
                "max_results": MAX_RESULTS,
            },
            "required": ["symbol"],
            "additionalProperties": False,
        },
        handler=find_references,
        effect=Effect.READ,
        apart=True,
        idempotent=True,
        intent=_symbol_of,
        timeout=30,
    ),
)
