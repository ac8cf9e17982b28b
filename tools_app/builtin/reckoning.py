"""Tools that need no model: `calculator` and `workspace_metrics`.

People and programs may call them directly; how, is in `conversations.actions.direct`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from harness.errors import Declined
from harness.events import TableDisplay
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from tools_app.builtin.access import FOLDER, refusals_for_model, workspace_of
from tools_app.calculator import MOST_CHARACTERS, calculate
from tools_app.provenance import named
from tools_app.textfiles import decode, lines_of
from tools_app.workspace import Entry, Workspace

LINES_IN = 1024 * 1024
"""Bytes of a file whose lines are counted; of a larger one only its size is."""
READ_AT_MOST = 64 * 1024 * 1024
"""Bytes that are read for counting lines; what comes after is counted by size alone."""
KINDS_SHOWN = 25


def calculator(_context: ToolContext, arguments: dict[str, Any]) -> str:
    expression = arguments["expression"]
    return f"{expression.strip()} = {calculate(expression)}".replace("= ≈", "≈")


@dataclass(slots=True)
class Tally:
    files: int = 0
    lines: int = 0
    size: int = 0

    def add(self, lines: int, size: int) -> None:
        self.files += 1
        self.lines += lines
        self.size += size


@refusals_for_model
def workspace_metrics(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    workspace = workspace_of(context)
    kinds: dict[str, Tally] = {}
    whole, left = Tally(), READ_AT_MOST
    counted: list[Entry] = []
    for entry in workspace.walk(arguments.get("path", "")):
        if entry.kind != "file":
            continue
        counted.append(entry)
        lines = 0
        if entry.size <= min(LINES_IN, left):
            left -= entry.size
            lines = _lines(workspace, entry.path)
        kind = PurePosixPath(entry.name).suffix.lower() or "(none)"
        kinds.setdefault(kind, Tally()).add(lines, entry.size)
        whole.add(lines, entry.size)
    ranked = sorted(kinds.items(), key=lambda kind: (-kind[1].size, kind[0]))
    rows = [(name, *_figures(tally)) for name, tally in ranked[:KINDS_SHOWN]]
    rest = Tally()
    for _name, tally in ranked[KINDS_SHOWN:]:
        rest.files, rest.lines = rest.files + tally.files, rest.lines + tally.lines
        rest.size += tally.size
    if rest.files:
        rows.append(("(others)", *_figures(rest)))
    rows.append(("all", *_figures(whole)))
    columns = ("Kind", "Files", "Lines", "Bytes")
    text = "\n".join(" | ".join(row) for row in (columns, *rows))
    # How a kind is called is the end of a name.
    told = named(context, text, counted)
    return replace(told, display=TableDisplay(columns=columns, rows=tuple(rows)))


def _figures(tally: Tally) -> tuple[str, str, str]:
    return f"{tally.files:,}", f"{tally.lines:,}", f"{tally.size:,}"


def _lines(workspace: Workspace, path: str) -> int:
    """0 for a file that is not text, or is gone meanwhile."""
    try:
        file = decode(workspace.read_bytes(path))
    except (Declined, OSError):
        return 0
    return len(lines_of(file.text)) if file is not None and file.text else 0


def _expression(arguments: Mapping[str, Any]) -> str:
    return str(arguments["expression"])


TOOLS = (
    Tool(
        name="calculator",
        description=(
            "Work out an arithmetic expression exactly: + - * / // % **, sqrt, abs, round, floor, "
            "ceil, min, max, sum, pi and e. Very large powers are refused."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "expression": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MOST_CHARACTERS,
                    "description": "For example “(2 + 3) * 4 ** 2 / 7”.",
                }
            },
            "required": ["expression"],
            "additionalProperties": False,
        },
        handler=calculator,
        effect=Effect.READ,
        apart=True,
        idempotent=True,
        intent=_expression,
        direct=True,
    ),
    Tool(
        name="workspace_metrics",
        description=(
            "Count the files, lines of text and bytes of the workspace, by kind of file. Lines are "
            "counted in text files of up to one mebibyte."
        ),
        input_schema={
            "type": "object",
            "properties": {"path": FOLDER},
            "additionalProperties": False,
        },
        handler=workspace_metrics,
        effect=Effect.READ,
        apart=True,
        idempotent=True,
        direct=True,
    ),
)
