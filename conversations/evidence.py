"""What a grader is shown of a conversation's files: names, sizes, hashes, and text as far as it fits.

Read from the workspace itself, whoever wrote it and whatever the agent says of it. Where files are on a
worker's machine there is nothing to show.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from harness.errors import AgentError
from harness.grading import Shown, quoted
from tools_app.provenance import NOTHING, Provenance
from tools_app.textfiles import decode
from tools_app.workspace import Entry, Workspace

MOST_FILES = 200
MOST_BYTES = 1_000_000
"""Of one file; of a larger one name and size are told."""
OF_ONE_FILE = 0.5
"""The largest share of the room that the text of one file takes."""


def evidence_of(workspace: Path, held: Provenance | None, room: int) -> Shown:
    """The files, those last changed first, in about `room` characters, and what strangers wrote there."""
    files = Workspace(workspace)
    listing = files.entries()
    newest = sorted(listing.entries, key=lambda entry: (-entry.changed, entry.path))
    told: list[str] = []
    shown = newest[:MOST_FILES]
    for entry in shown:
        text = _told(files, entry, max(0, min(room, int(room * OF_ONE_FILE))))
        room -= len(text)
        told.append(text)
    # What was put there meanwhile was marked before.
    marks = held.foreign() if held is not None else NOTHING
    folders = marks.folders_in(files)
    sources = (marks.about(entry) or marks.about_name(entry, folders) for entry in shown)
    foreign = next(filter(None, sources), "") if marks else ""
    left_out = len(newest) - len(told)
    if left_out or not listing.complete:
        told.append(f"({left_out if listing.complete else 'Many'} older files are left out.)")
    return Shown("\n\n".join(told), foreign)


def _told(files: Workspace, entry: Entry, room: int) -> str:
    # In quotes: who is judged names files as she likes.
    name = json.dumps(entry.display_path, ensure_ascii=False)
    head = f"[the file {name}] ({entry.size:,} bytes"
    if entry.size > MOST_BYTES:
        return f"{head}, too large to show)"
    try:
        data = files.read_bytes(entry.path, MOST_BYTES)
    except AgentError:
        return f"{head}, cannot be read)"
    head = f"{head}, SHA-256 {hashlib.sha256(data).hexdigest()})"
    found = decode(data, complete=True)
    if found is None:
        return f"{head}: no text"
    if not room:
        return f"{head}: not shown for want of room"
    text = found.text[:room]
    cut = f"\n[{len(found.text) - room:,} characters more]" if len(found.text) > room else ""
    return quoted(f"{head}:\n{text}{cut}")
