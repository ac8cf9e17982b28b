"""A unified diff as a table: line numbers of both sides, and added and removed lines told by a sign
and a word as well as by colour. Making diffs is done in `tools_app.diffs`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import Literal

from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from reading.unseen import visible

MOST_LINES = 2_000
"""Rows shown; the rest is counted in a last one."""
LONGEST_LINE = 2_000

_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d{1,9})? \+(\d{1,9})(?:,\d{1,9})? @@")

Kind = Literal["added", "removed", "same", "hunk", "note"]


@dataclass(frozen=True, slots=True)
class Line:
    kind: Kind
    text: str
    old: int | None = None
    new: int | None = None


def parse_diff(diff: str) -> list[Line]:
    """The lines of a unified diff with their numbers. Lines that are none of its are notes."""
    lines: list[Line] = []
    old = new = 0
    # A file header is only one before the first hunk; later `--- x` is a removed line `-- x`.
    in_hunk = False
    for raw in diff.split("\n")[: -1 if diff.endswith("\n") else None] if diff else []:
        text = raw.removesuffix("\r")
        hunk = _HUNK.match(text)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            in_hunk = True
            lines.append(Line("hunk", text))
        elif in_hunk and text.startswith("+"):
            lines.append(Line("added", text[1:], new=new))
            new += 1
        elif in_hunk and text.startswith("-"):
            lines.append(Line("removed", text[1:], old=old))
            old += 1
        elif in_hunk and text.startswith(" "):
            lines.append(Line("same", text[1:], old=old, new=new))
            old, new = old + 1, new + 1
        else:
            lines.append(Line("note", text.removeprefix("\\ ")))
    return lines


def diff_table(diff: str, *, caption: str, longest: int | None = LONGEST_LINE) -> SafeString:
    """`diff` as a table called `caption`. Never raises; an empty diff gives an empty table body. `longest`:
    characters of a line that are shown; None: all, where a person says yes to them."""
    lines = parse_diff(diff)
    rows = [_row(line, longest) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        left = _("%(count)d more lines are not shown.") % {"count": len(lines) - MOST_LINES}
        rows.append(_row(Line("note", left), longest))
    columns = (_("Old line"), _("New line"), _("Change"), _("Text"))
    cells = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    head = f'<thead class="visually-hidden"><tr>{cells}</tr></thead>'
    return mark_safe(  # noqa: S308 - every text in it is escaped above and below
        '<div class="diff-scroll" tabindex="0"><table class="diff">'
        f'<caption class="visually-hidden">{escape(caption)}</caption>{head}'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(line: Line, longest: int | None) -> str:
    text = visible(line.text)
    if longest is not None and len(text) > longest:
        text = f"{text[:longest]}…"
    if line.kind in {"hunk", "note"}:
        return f'<tr class="diff-{line.kind}"><td colspan="4">{escape(text)}</td></tr>'
    sign = {"added": "+", "removed": "−", "same": ""}[line.kind]
    word = {"added": _("added"), "removed": _("removed"), "same": ""}[line.kind]
    summary = (
        f'<span aria-hidden="true">{sign}</span><span class="visually-hidden">{escape(word)}</span>'
    )
    return (
        f'<tr class="diff-{line.kind}"><td class="number">{line.old or ""}</td>'
        f'<td class="number">{line.new or ""}</td><td class="sign">{summary if sign else ""}</td>'
        f'<td class="text">{escape(text)}</td></tr>'
    )
