"""The built-in tools as the public toolset knows them: the names of tools and of their arguments.

Both ways, and nothing is lost on the way: an argument that the public toolset does not have keeps its
name. Which tools an agent has is `toolsets`'.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMES: dict[str, str] = {
    "bash": "bash",
    "edit": "edit_file",
    "glob": "glob",
    "grep": "grep",
    "read": "read_file",
    "web_fetch": "web_fetch",
    "web_search": "web_search",
    "write": "write_file",
}
"""Name on the wire → ours."""
OURS = {ours: wire for wire, ours in NAMES.items()}

_ARGUMENTS: Mapping[str, Mapping[str, str]] = {
    "read_file": {"path": "file_path"},
    "write_file": {"path": "file_path"},
    "edit_file": {"path": "file_path", "old_text": "old_string", "new_text": "new_string"},
}
"""Of a tool of ours: our argument → the public one."""
FIRST, LAST, RANGE = "start_line", "end_line", "view_range"
TO_THE_END = -1


def public_call(name: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """A call's tool and input in the public words; any other tool's as they are."""
    if name not in OURS:
        return name, dict(given)
    words = _ARGUMENTS.get(name, {})
    renamed = {words.get(key, key): value for key, value in given.items()}
    if name == "bash" and _is_number(given.get("timeout")):
        renamed["timeout_ms"] = round(renamed.pop("timeout") * 1_000)
    if name == "read_file" and (FIRST in given or LAST in given):
        renamed[RANGE] = [renamed.pop(FIRST, 1), renamed.pop(LAST, TO_THE_END)]
    return OURS[name], renamed


def our_input(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The input for the tool that we call `name`, from public words or from ours."""
    words = {theirs: ours for ours, theirs in _ARGUMENTS.get(name, {}).items()}
    renamed = {words.get(key, key): value for key, value in given.items()}
    if name == "bash" and _is_number(given.get("timeout_ms")):
        renamed["timeout"] = renamed.pop("timeout_ms") / 1_000
    lines = given.get(RANGE)
    if name == "read_file" and isinstance(lines, list) and len(lines) == 2:
        del renamed[RANGE]
        renamed[FIRST] = lines[0]
        if lines[1] != TO_THE_END:
            renamed[LAST] = lines[1]
    return renamed


def _is_number(value: Any) -> bool:
    """Also a model's own mistake is told; only what can be reckoned with is reckoned with."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12
