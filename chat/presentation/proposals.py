"""What a call would change of a file, as a diff made of its arguments alone: so it is the same live and
after a reload, and is what a person's answer is bound to. What the file holds now, nobody looks at here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from harness.events import DiffDisplay
from reading.unseen import visible
from rendering.diff import LONGEST_LINE, MOST_LINES, diff_table
from tools_app.diffs import SHOWN_CHARACTERS, diff_of

MATCHED = 60
"""Lines on either side up to which single lines are told apart; of longer texts one block is taken away
and one put in, which takes a time in proportion to them."""


@dataclass(frozen=True, slots=True)
class Diff:
    path: str
    added: int
    removed: int
    created: bool
    table: SafeString
    """Empty when nothing changed."""
    replaces: bool = False
    """It is the whole content, whatever the file holds now."""

    @property
    def lines(self) -> int:
        return self.added + self.removed


def diff_from(
    change: DiffDisplay, *, replaces: bool = False, longest: int | None = LONGEST_LINE
) -> Diff:
    path = visible(change.path)
    caption = _("Changes of %(path)s") % {"path": path}
    table = SafeString("")
    if change.diff:
        table = diff_table(change.diff, caption=caption, longest=longest)
    return Diff(path, change.added, change.removed, change.created, table, replaces)


def proposed_by(name: str, given: Mapping[str, Any]) -> Diff | None:
    """None: the call changes no file, or its change is not shown to the last letter this way; then its
    arguments are."""
    match name, given:
        case "edit_file", {"path": str(path), "old_text": str(old), "new_text": str(new), **rest}:
            pass
        case "write_file", {"path": str(path), "content": str(new), **rest}:
            old = ""
        case _:
            return None
    if rest or not path or old == new:
        return None
    before, after = visible(old), visible(new)
    if old and not (before.endswith("\n") or after.endswith("\n")):
        # Pieces of a file end anywhere; that is no word about the file's last line.
        before, after = f"{before}\n", f"{after}\n" if after else ""
    if not _is_shown_whole(before, after):
        return None
    change = diff_of(path, before, after, most=MATCHED)
    return diff_from(change, replaces=name == "write_file")


def _is_shown_whole(before: str, after: str) -> bool:
    """Neither is cut in what `diff_of` makes, nor in its table."""
    lines = before.count("\n") + after.count("\n")
    if len(before) + len(after) + 2 * lines + 200 > SHOWN_CHARACTERS or lines + 20 > MOST_LINES:
        return False
    return all(len(line) <= LONGEST_LINE for text in (before, after) for line in text.split("\n"))
