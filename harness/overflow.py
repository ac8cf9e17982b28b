"""Results that are too long for a prompt: the model gets a preview, and the path of the whole.

Where the whole is kept is the runner's part (`Kit.keep`); how long a result may be, the tool's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

from harness.content import Block, Text
from harness.tools import Outcome

LIMIT = 60_000
"""Characters of one result, unless the tool says less: more than the longest page of `read_file`."""
HEAD, TAIL = 5_000, 3_000
"""Characters of a preview."""

Keep = Callable[[str, str, bool], Awaitable[str]]
"""Stores the whole text of a call, given by its id, and whether others wrote of it; answers with the path
that tools read it by, or with "" where it cannot be stored."""


async def bounded(outcome: Outcome, call_id: str, limit: int, keep: Keep | None) -> Outcome:
    """The same outcome, or, where its text is longer than `limit` (0: the general one), a preview."""
    texts = [block.text for block in outcome.content if isinstance(block, Text)]
    if sum(map(len, texts)) <= (limit or LIMIT):
        return outcome
    whole = "\n".join(texts)
    path = await keep(call_id, whole, outcome.untrusted) if keep is not None else ""
    others: list[Block] = [block for block in outcome.content if not isinstance(block, Text)]
    preview = Text(text=previewed(whole, path))
    return replace(outcome, content=(preview, *others))


def previewed(whole: str, path: str) -> str:
    """Beginning and end of a text, with a note on where the rest is."""
    left_out = len(whole) - HEAD - TAIL
    if path:
        where = f"the whole text is in the file {path}: read or search it there"
    else:
        where = "it could not be kept; ask for less at once"
    return f"{whole[:HEAD]}\n[… {left_out:,} characters left out; {where} …]\n{whole[-TAIL:]}"
