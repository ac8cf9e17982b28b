"""What differs between two versions of a skill, file by file, as HTML for pages and as facts for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from rendering.diff import diff_table
from tools_app.diffs import diff_of

from .names import SKILL

LONGEST = 200_000
"""Bytes of a file up to which its lines are compared."""
LONGEST_TOGETHER = 400_000
"""Characters of all differences together; of files behind those it is only said that they differ."""


@dataclass(frozen=True, slots=True)
class FileChange:
    path: str
    kind: Literal["added", "removed", "changed"]
    diff: str
    """Unified; empty for what is no text or too long."""

    @property
    def table(self) -> SafeString:
        caption = _("What changes in %(path)s") % {"path": self.path}
        return diff_table(self.diff, caption=caption) if self.diff else SafeString("")


def changes_between(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[FileChange]:
    """In the order of paths, SKILL.md first; nothing for files that are the same."""
    found = []
    left = LONGEST_TOGETHER
    for path in sorted(before.keys() | after.keys(), key=lambda path: (path != SKILL, path)):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        kind: Literal["added", "removed", "changed"] = (
            "added" if old is None else "removed" if new is None else "changed"
        )
        diff = _diff(path, old or b"", new or b"") if left > 0 else ""
        left -= len(diff)
        found.append(FileChange(path, kind, diff))
    return found


def _diff(path: str, old: bytes, new: bytes) -> str:
    if max(len(old), len(new)) > LONGEST or b"\0" in old or b"\0" in new:
        return ""
    try:
        return diff_of(path, old.decode(), new.decode()).diff
    except UnicodeDecodeError:
        return ""
