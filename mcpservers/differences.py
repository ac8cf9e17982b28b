"""A server's tools as a page shows them: what was released, line by line what is otherwise now, and what
became of their calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reading.matching import matched
from reading.unseen import visible
from tools_app.diffs import MATCHED_LINES

from .counting import Counted, counted
from .listing import Described
from .models import McpServer, McpTool

Line = tuple[str, str]
"""How it came to be (`added`, `removed`, `same`), and its text."""


@dataclass(frozen=True, slots=True)
class Shown:
    row: McpTool
    description: str
    schema: str
    address: str
    """As rules name it."""
    digest: str
    """Of what would be released; empty: nothing would."""
    lines: Sequence[Line]
    """What changed; empty where there is nothing to compare with."""
    hints: Sequence[str]
    counted: Counted

    @property
    def is_held(self) -> bool:
        return bool(self.digest)


def pages_of(server: McpServer) -> list[Shown]:
    rows = list(server.tools.select_related("released_by"))
    calls = counted(rows)
    shown = [_shown(server, row, calls.get(row.pk, Counted())) for row in rows]
    return sorted(shown, key=lambda each: not each.is_held)


def _shown(server: McpServer, row: McpTool, calls: Counted) -> Shown:
    pinned = Described.model_validate(row.pinned) if row.pinned else None
    seen = Described.model_validate(row.seen) if row.seen else None
    now = seen or pinned
    lines = _compared(pinned.words(), seen.words()) if pinned and seen else []
    return Shown(
        row=row,
        description=visible(now.description or now.title) if now else "",
        schema=visible(now.words()) if now else "",
        address=f"mcp:{server.name}:{row.name.removeprefix(f'mcp__{server.name}__')}",
        digest=seen.digest if seen else "",
        lines=lines,
        hints=[name for name, value in now.hints.items() if value] if now else [],
        counted=calls,
    )


def _compared(before: str, now: str) -> list[Line]:
    old, new = visible(before).split("\n"), visible(now).split("\n")
    matcher = matched(old, new) if max(len(old), len(new)) <= MATCHED_LINES else None
    if matcher is None:
        return [*(("removed", text) for text in old), *(("added", text) for text in new)]
    found: list[Line] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            found += [("same", text) for text in old[a:b]]
            continue
        found += [("removed", text) for text in old[a:b]]
        found += [("added", text) for text in new[c:d]]
    return found
