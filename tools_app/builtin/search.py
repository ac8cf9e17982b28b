"""Finding files by content and by name.

Expressions are matched in a process of their own, so that one that never ends is ended.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harness.errors import Declined, ToolError, ToolTimedOut
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from tools_app.builtin.access import FOLDER, pattern_of, refusals_for_model, workspace_of
from tools_app.confinement import parse_path
from tools_app.globs import Glob
from tools_app.isolation import IsolatedProcess, IsolationFailed, IsolationTimedOut
from tools_app.provenance import answered, named, whose_name
from tools_app.textfiles import decode
from tools_app.workspace import Entry, Workspace

VENDORED = frozenset(
    {"node_modules", "bower_components", "site-packages", ".venv", "venv", "__pycache__"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox", ".gradle", ".terraform"}
    | {".next", ".nuxt", ".hg", ".svn"}
)
"""Folders of installed packages, caches and other systems' records, which searches pass over."""
SEARCHED_SIZE = 512 * 1024
"""Bytes of the largest file that is searched."""
SECONDS = 10.0
"""How long one search may take."""
DEFAULT_RESULTS, MOST_RESULTS = 50, 200
GLOBBED = 200
"""Paths in one answer of `glob`."""


@dataclass(slots=True)
class Found:
    """What a search came to. Each match is `{path, line, text, before, after}`."""

    matches: list[dict[str, Any]] = field(default_factory=list)
    files: int = 0
    too_large: int = 0
    sources: list[Entry] = field(default_factory=list)
    """The files that the matches stand in."""
    more: bool = False
    """The search ended because it had as many matches as were asked for."""


def _nobodys(_entry: Entry) -> str:
    return ""


def search(
    workspace: Workspace,
    pattern: str,
    *,
    path: str = "",
    glob: str = "",
    ignore_case: bool = False,
    context: int = 0,
    most: int = DEFAULT_RESULTS,
    seconds: float = SECONDS,
    whose: Callable[[Entry], str] = _nobodys,
) -> Found:
    """Lines that a regular expression fits, file by file in the order of their paths. `whose`: whose
    words the name of a file is, for an error that repeats it.

    Raises `ToolError` for an expression that is none, `ToolTimedOut` for one that takes too long,
    and the workspace's errors for `path`.
    """
    found = Found()
    setup = {"pattern": pattern, "ignore_case": ignore_case, "context": context}
    at: Entry | None = None
    try:
        with IsolatedProcess("regex", seconds=seconds) as process:
            refused = process.ask(setup).get("error")
            if refused:
                raise ToolError(
                    f"The pattern is not a valid regular expression: {refused}.",
                    hint="Correct it, or set literal to true to look for it as it stands.",
                )
            for entry in _files(workspace, path, glob):
                at = entry
                text = _text(workspace, entry, found)
                if text is None:
                    continue
                # One match more than asked for tells whether there are more.
                room = most + 1 - len(found.matches)
                matches = process.ask({"text": text, "most": room})
                found.matches += [{"path": entry.display_path, **match} for match in matches]
                if matches:
                    found.sources.append(entry)
                if len(found.matches) > most:
                    del found.matches[most:]
                    found.more = True
                    break
    except IsolationTimedOut as problem:
        raise ToolTimedOut(
            f"The search did not finish within {seconds:g} seconds; it was in “{_name(at)}”.",
            hint="Simplify the pattern: nested repetition such as (a+)+ can take for ever. "
            "Or search fewer files with path and glob.",
            untrusted_by=whose(at) if at else "",
        ) from problem
    except IsolationFailed as problem:
        raise ToolError(
            f"The search of “{_name(at)}” broke off; the pattern needs too much memory.",
            hint="Simplify the pattern.",
            untrusted_by=whose(at) if at else "",
        ) from problem
    return found


def _name(entry: Entry | None) -> str:
    return entry.display_path if entry else ""


def _files(workspace: Workspace, path: str, glob: str) -> Iterator[Entry]:
    start = workspace.stat(path)
    if start.kind == "folder":
        yield from _fitting(workspace, path, glob or "**")
        return
    with workspace.open_for_read(path):  # refuses what is no ordinary file
        yield start


def _fitting(workspace: Workspace, folder: str, pattern: str) -> Iterator[Entry]:
    fits = Glob(pattern).matches
    above = "".join(f"{name}/" for name in parse_path(folder))
    for entry in workspace.walk(folder, skip=VENDORED):
        if entry.kind == "file" and fits(entry.path.removeprefix(above)):
            yield entry


def _text(workspace: Workspace, entry: Entry, found: Found) -> str | None:
    if entry.size > SEARCHED_SIZE:
        found.too_large += 1
        return None
    try:
        data = workspace.read_bytes(entry.path, SEARCHED_SIZE)
    except Declined:  # gone, grown or swapped since it was listed
        return None
    text = decode(data)
    if text is None:
        return None
    found.files += 1
    return text.text


# --- grep -----------------------------------------------------------------------------------------


@refusals_for_model
def grep(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    pattern = arguments["pattern"]
    found = search(
        workspace_of(context),
        re.escape(pattern) if arguments.get("literal", False) else pattern,
        path=arguments.get("path", ""),
        glob=arguments.get("glob", ""),
        ignore_case=not arguments.get("case_sensitive", True),
        context=arguments.get("context", 0),
        most=arguments.get("max_results", DEFAULT_RESULTS),
        whose=partial(whose_name, context),
    )
    return answered(context, rendered(found), found.sources)


def rendered(found: Found) -> str:
    """The matches as `path:line: text`, their surroundings as `path-line- text`, and a trailer."""
    lines: list[str] = []
    shown_until: tuple[str, int] = ("", 0)
    for match in found.matches:
        path, number = match["path"], match["line"]
        first = number - len(match["before"])
        until = shown_until[1] if shown_until[0] == path else 0
        surrounded = match["before"] or match["after"]
        if lines and surrounded and first > until + 1:
            lines.append("--")
        for offset, text in enumerate(match["before"]):
            if first + offset > until:
                lines.append(f"{path}-{first + offset}- {text}")
        if number <= until:  # already there as the surroundings of the match before
            at = -1 - (until - number)
            lines[at] = f"{path}:{number}: {match['text']}"
        else:
            lines.append(f"{path}:{number}: {match['text']}")
        for offset, text in enumerate(match["after"], 1):
            if number + offset > until:
                lines.append(f"{path}-{number + offset}- {text}")
        shown_until = (path, max(until, number + len(match["after"])))
    lines.append(_trailer(found))
    return "\n".join(lines)


def _trailer(found: Found) -> str:
    searched = f"{found.files:,} files searched"
    if found.too_large:
        searched += f", {found.too_large:,} left out for their size"
    if not found.matches:
        return f"No match ({searched})."
    if found.more:
        return f"[Only the first {len(found.matches)} matches; narrow the search for the rest.]"
    return f"[{len(found.matches)} matches, {searched}.]"


# --- glob -----------------------------------------------------------------------------------------


@refusals_for_model
def glob(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    folder = arguments.get("path", "")
    files = list(_fitting(workspace_of(context), folder, arguments["pattern"]))
    if not files:
        return ToolOutput("No file fits the pattern.")
    files.sort(key=lambda entry: (-entry.modified.timestamp(), entry.path))
    lines = [entry.display_path for entry in files[:GLOBBED]]
    if len(files) > GLOBBED:
        lines.append(f"[{len(files) - GLOBBED:,} older files are not shown; narrow the pattern.]")
    return named(context, "\n".join(lines), files[:GLOBBED])


MAX_RESULTS = {
    "type": "integer",
    "minimum": 1,
    "maximum": MOST_RESULTS,
    "description": f"How many matches at most. Default: {DEFAULT_RESULTS}.",
}
FILE_OR_FOLDER = {
    "type": "string",
    "maxLength": 1_024,
    "description": "File or folder relative to the workspace; left out: the whole workspace.",
}
GLOB = {
    "type": "string",
    "minLength": 1,
    "maxLength": 256,
    "description": "Only files whose path fits, for example “*.py” or “src/**/*.{ts,tsx}”.",
}

TOOLS = (
    Tool(
        name="grep",
        description=(
            "Search the contents of files for a regular expression, line by line. Answers with "
            "“path:line: text”. Binary files, files over 512 KiB, installed packages and caches "
            f"are passed over; a search ends after {SECONDS:g} seconds."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "pattern": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1_000,
                    "description": "Regular expression in Python's syntax, or plain text with "
                    "literal.",
                },
                "path": FILE_OR_FOLDER,
                "glob": GLOB,
                "literal": {
                    "type": "boolean",
                    "description": "Take the pattern as plain text. Default: false.",
                },
                "case_sensitive": {
                    "type": "boolean",
                    "description": "Tell upper from lower case. Default: true.",
                },
                "context": {
                    "type": "integer",
                    "minimum": 0,
                    "maximum": 5,
                    "description": "Lines to show before and after each match. Default: 0.",
                },
                "max_results": MAX_RESULTS,
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        handler=grep,
        effect=Effect.READ,
        apart=True,
        idempotent=True,
        intent=pattern_of,
        timeout=30,
    ),
    Tool(
        name="glob",
        description=(
            "Find files by name, newest first. “*” stands for anything within a name, “**” for any "
            "number of folders, “{a,b}” for either; a pattern without “/” fits at any depth. At "
            f"most {GLOBBED} paths; installed packages and caches are passed over."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "pattern": {**GLOB, "description": "For example “*.md” or “src/**/test_*.py”."},
                "path": FOLDER,
            },
            "required": ["pattern"],
            "additionalProperties": False,
        },
        handler=glob,
        effect=Effect.READ,
        apart=True,
        idempotent=True,
        intent=pattern_of,
    ),
)
