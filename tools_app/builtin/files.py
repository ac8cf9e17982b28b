"""Reading, writing, editing and listing files of the workspace.

Commands and searches have files of their own.
"""

from __future__ import annotations

import mimetypes
from typing import Any

from harness.errors import NotFound, ToolError
from harness.tools import Effect, Tool, ToolContext, ToolOutput
from tools_app.builtin.access import FOLDER, PATH, path_of, refusals_for_model, workspace_of
from tools_app.builtin.search import VENDORED
from tools_app.confinement import shown
from tools_app.diffs import diff_of
from tools_app.documents import NAMES, DocumentText, Unreadable, kind_of, text_of_document
from tools_app.provenance import answered, named, write
from tools_app.textfiles import TextFile, decode, find_first, lines_of, replace_at
from tools_app.workspace import Entry, Workspace

READ_CHARACTERS = 50_000
"""Characters of one answer of `read_file`."""
LINE_CHARACTERS = 2_000
"""Characters of one line that are shown."""
CONTENT_CHARACTERS = 1_000_000
"""Characters that one call may write."""
LISTED = 500
"""Names in one answer of `list_files`."""


def _text_file(workspace: Workspace, path: str) -> TextFile:
    return _text_in(path, workspace.read_bytes(path))


def _text_in(path: str, data: bytes) -> TextFile:
    found = decode(data)
    if found is None:
        kind = mimetypes.guess_type(path)[0] or "unknown type"
        raise ToolError(
            f"“{shown(path)}” is not a text file ({kind}, {len(data):,} bytes).",
            hint="Only text can be read here.",
        )
    return found


def _document(path: str, data: bytes) -> DocumentText | None:
    """What stands in a PDF or an Office document; None for any other file."""
    kind = kind_of(path, data)
    if not kind:
        return None
    try:
        return text_of_document(data, kind)
    except Unreadable as problem:
        raise ToolError(
            f"The {NAMES[kind]} “{shown(path)}” cannot be read: {problem.message}.",
            hint="A command may read it in another way, or the person can say what stands in it.",
        ) from problem


# --- read_file ------------------------------------------------------------------------------------


@refusals_for_model
def read_file(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput | str:
    workspace, path = workspace_of(context), arguments["path"]
    entry = workspace.stat(path)
    data = workspace.read_bytes(path)
    document = _document(path, data)
    lines = lines_of(document.text if document else _text_in(path, data).text)
    total = len(lines)
    if not total:
        return f"{shown(path)} is empty."
    first = arguments.get("start_line", 1)
    last = min(arguments.get("end_line", total), total)
    if first > total:
        raise ToolError(f"“{shown(path)}” has {total:,} lines; line {first:,} does not exist.")
    if last < first:
        raise ToolError(f"end_line ({last}) is before start_line ({first}).")
    width = len(str(last))
    numbered: list[str] = []
    room = READ_CHARACTERS
    for number in range(first, last + 1):
        line = f"{number:>{width}}\t{_shortened(lines[number - 1])}"
        room -= len(line) + 1
        if room < 0:
            break
        numbered.append(line)
    end = first + len(numbered) - 1
    what = f" (the text of the {NAMES[document.kind]})" if document else ""
    text = f"{shown(path)}{what}: lines {first}–{end} of {total}\n" + "\n".join(numbered)
    if end < last:
        text += (
            f"\n[Stopped after {READ_CHARACTERS:,} characters. Go on with start_line={end + 1}.]"
        )
    elif end < total:
        text += f"\n[{total - end:,} more lines. Go on with start_line={end + 1}.]"
    elif document and document.cut:
        text += "\n[The document goes on; only its beginning was read.]"
    return answered(context, text, [entry], names=False)


def _shortened(line: str) -> str:
    more = len(line) - LINE_CHARACTERS
    return line if more <= 0 else f"{line[:LINE_CHARACTERS]}… [{more:,} more characters]"


# --- write_file, edit_file ------------------------------------------------------------------------


@refusals_for_model
def write_file(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    workspace, path, content = workspace_of(context), arguments["path"], arguments["content"]
    try:
        data = content.encode()
    except UnicodeEncodeError as problem:
        raise ToolError("The content is not valid Unicode: it holds half of a pair.") from problem
    with workspace.exclusive() as lease:
        before = _content_before(workspace, path)
        entry = write(context, workspace, path, data, lease=lease)
    created = before is None
    verb = "Created" if created else "Replaced"
    lines = len(lines_of(content))
    return ToolOutput(
        f"{verb} {shown(entry.path)}: {lines:,} lines, {entry.size:,} bytes.",
        display=diff_of(entry.display_path, before or "", content, created=created),
    )


def _content_before(workspace: Workspace, path: str) -> str | None:
    """None: there was no file. A binary one counts as empty; its bytes are nothing to show."""
    try:
        found = decode(workspace.read_bytes(path))
    except NotFound:
        return None
    return found.text if found else ""


@refusals_for_model
def edit_file(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    workspace, path = workspace_of(context), arguments["path"]
    old, new = arguments["old_text"], arguments["new_text"]
    if old == new:
        raise ToolError("old_text and new_text are the same; nothing would change.")
    with workspace.exclusive() as lease:
        before = workspace.stat(path)
        file = _text_file(workspace, path)
        places = find_first(file.text, old)
        if not places:
            raise ToolError(
                f"old_text does not occur in “{shown(path)}”.",
                hint="It must match exactly, spaces included and without line numbers. "
                "Read the file again.",
            )
        if len(places) > 1:
            raise ToolError(
                f"old_text occurs more than once in “{shown(path)}”; it must be unique.",
                hint="Include more of the lines around the one that is meant.",
            )
        changed = replace_at(file.text, places[0], old, new)
        try:
            data = file.encode(changed)
        except UnicodeEncodeError as problem:
            raise ToolError(
                f"“{shown(path)}” is encoded as {file.encoding}, which lacks a character of "
                "new_text.",
                hint="Write the whole file with write_file, which uses UTF-8.",
            ) from problem
        entry = write(context, workspace, path, data, lease=lease, before=before)
    diff = diff_of(entry.display_path, file.text, changed)
    return ToolOutput(
        f"Edited {shown(entry.path)}: {diff.added} lines added, {diff.removed} removed.",
        display=diff,
    )


# --- list_files -----------------------------------------------------------------------------------


@refusals_for_model
def list_files(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    path, depth = arguments.get("path", ""), arguments.get("depth", 2)
    lines: list[str] = []
    listed: list[Entry] = []
    for entry in workspace_of(context).walk(path, depth=depth, skip=VENDORED):
        if len(lines) == LISTED:
            lines.append(f"[More than {LISTED} names. List a folder of its own, or use glob.]")
            break
        lines.append(_listed(entry))
        listed.append(entry)
    return named(context, "\n".join(lines) if lines else "The folder is empty.", listed)


def _listed(entry: Entry) -> str:
    match entry.kind:
        case "folder":
            note = "  (not looked into)" if entry.name in VENDORED else ""
            return f"{entry.display_path}/{note}"
        case "link":
            return f"{entry.display_path}  (symbolic link, not followed)"
        case "other":
            return f"{entry.display_path}  (not an ordinary file)"
        case _:
            return f"{entry.display_path}  {entry.size:,} bytes"


TOOLS = (
    Tool(
        name="read_file",
        description=(
            "Read a text file of the workspace. Every line is shown as its number, a tab and the "
            "line; number and tab are not part of the file. At most "
            f"{READ_CHARACTERS:,} characters at once: the answer says where to go on. Of PDF, Word, "
            "Excel and PowerPoint files (.docx, .xlsx, .pptx) the text is shown. Files over 10 MiB and "
            "other binary files cannot be read."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "path": PATH,
                "start_line": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "First line, counting from 1. Default: 1.",
                },
                "end_line": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "Last line, included. Default, and if too large: the last one.",
                },
            },
            "required": ["path"],
            "additionalProperties": False,
        },
        handler=read_file,
        effect=Effect.READ,
        apart=True,
        idempotent=True,
        intent=path_of,
    ),
    Tool(
        name="write_file",
        description=(
            "Create a text file of the workspace, or replace the whole content of one. Missing "
            "folders are made. To change a part of a file use edit_file."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "path": PATH,
                "content": {
                    "type": "string",
                    "maxLength": CONTENT_CHARACTERS,
                    "description": "The whole new content, stored as UTF-8.",
                },
            },
            "required": ["path", "content"],
            "additionalProperties": False,
        },
        handler=write_file,
        effect=Effect.WORKSPACE,
        apart=True,
        idempotent=True,
        destructive=True,
        intent=path_of,
    ),
    Tool(
        name="edit_file",
        description=(
            "Replace one piece of text in a file. old_text must occur exactly once, so include "
            "enough of its surroundings; it is taken literally, and so is new_text. Line ends and "
            "encoding of the file are kept. Read the file first."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "path": PATH,
                "old_text": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": CONTENT_CHARACTERS,
                    "description": "The text to replace, exactly as it stands in the file.",
                },
                "new_text": {
                    "type": "string",
                    "maxLength": CONTENT_CHARACTERS,
                    "description": "What stands there afterwards; empty to remove it.",
                },
            },
            "required": ["path", "old_text", "new_text"],
            "additionalProperties": False,
        },
        handler=edit_file,
        effect=Effect.WORKSPACE,
        apart=True,
        destructive=True,
        intent=path_of,
    ),
    Tool(
        name="list_files",
        description=(
            "List the files and folders of the workspace with sizes, folders ending in “/”. "
            "Installed packages and caches are named but not looked into. At most "
            f"{LISTED} names; to find files by name use glob."
        ),
        input_schema={
            "type": "object",
            "properties": {
                "path": FOLDER,
                "depth": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 10,
                    "description": "How many levels of folders to show. Default: 2.",
                },
            },
            "additionalProperties": False,
        },
        handler=list_files,
        effect=Effect.READ,
        apart=True,
        idempotent=True,
        intent=path_of,
    ),
)
