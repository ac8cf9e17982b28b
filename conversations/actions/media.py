"""Pictures and documents that no model service could open are refused before anything is stored.

Which those are is `tools_app.media`'s word. To be called outside transactions: a file is opened in a
process of its own, which takes its time; asked again of the same file within one, it costs nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from harness.content import Block, Text
from harness.errors import Invalid
from harness.faults import below, place
from tools_app.media import first_fault, with_pages


def check_media(
    content: Sequence[Block], *, who: Hashable, field: str = "content"
) -> tuple[Block, ...]:
    """The same as it is to be stored, its documents with the number of their pages.

    Raises Invalid naming the block, what is wrong with it, and what to do; and Busy when others' files,
    or others of `who`, are being looked at: nobody waits for that."""
    check_sent_together([(field, content)], who=who)
    return with_pages(content)


def check_sent_together(contents: Iterable[tuple[str, Sequence[Block]]], *, who: Hashable) -> None:
    """Raises as `check_media`, of all that one request brings, each content with the field it stands in."""
    sent = [
        (below(field, place(number)), block)
        for field, content in contents
        for number, block in enumerate(content)
    ]
    fault = first_fault([block for _field, block in sent], who=who)
    if fault is not None:
        where = below(sent[fault.place][0], fault.field)
        raise Invalid(fault.message, field=where, hint=fault.hint)


def brings_files(content: Sequence[Block]) -> bool:
    return any(not isinstance(block, Text) for block in content)
