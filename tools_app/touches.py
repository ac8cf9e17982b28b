"""What a call would touch, told before it runs: a diff, a command with its directory, a host.

For people's eyes only. Nothing is judged by it, and what cannot be told is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import AgentError
from reading.hostnames import LONGEST_ADDRESS, split_address
from tools_app.diffs import diff_of
from tools_app.textfiles import decode, find_all, replace_at
from tools_app.workspace import Workspace, workspace_for

logger = logging.getLogger(__name__)

LARGEST = 200_000
"""Bytes of a file up to which a change of it is shown beforehand."""
COMMANDS = ("bash", "background_run")


def touched_by(conversation_uid: str, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """`{"kind": "diff" | "command" | "address" | "path", …}`, or `{}`. Raises nothing."""
    try:
        if tool in COMMANDS:
            return {
                "kind": "command",
                "command": str(given.get("command", "")),
                "directory": str(given.get("directory") or "workspace"),
            }
        if tool in {"write_file", "edit_file"}:
            return _change(workspace_for(conversation_uid), tool, given)
        if isinstance(url := given.get("url"), str):
            known = split_address(url).hostname if len(url) <= LONGEST_ADDRESS else None
            return {"kind": "address", "url": url, "host": known or ""}
        if isinstance(path := given.get("path"), str) and path:
            return {"kind": "path", "path": path}
    except (AgentError, OSError, ValueError) as problem:
        return {"kind": "unknown", "why": str(problem)[:500]}
    except Exception:  # a preview must never keep a question from being asked
        logger.exception("what a call of %s would touch could not be told", tool)
    return {}


def _change(root: Path, tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    path = str(given.get("path", ""))
    before = _text(Workspace(root), path)
    if tool == "write_file":
        after = str(given.get("content", ""))
    else:
        old, new = str(given.get("old_text", "")), str(given.get("new_text", ""))
        places = find_all(before, old) if before is not None and old else []
        if before is None or len(places) != 1:
            return {"kind": "path", "path": path}
        after = replace_at(before, places[0], old, new)
    if (before is not None and len(before) > LARGEST) or len(after) > LARGEST:
        return {"kind": "path", "path": path}
    shown = diff_of(path, before or "", after, created=before is None)
    return {"kind": "diff", **shown.model_dump(exclude={"type"})}


def _text(workspace: Workspace, path: str) -> str | None:
    """None: there is no such file. Bytes that are no text count as an empty one."""
    try:
        found = decode(workspace.read_bytes(path))
    except AgentError:
        return None
    return found.text if found else ""
