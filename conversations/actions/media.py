"""Pictures and documents that no model service could open are refused before anything is stored.

Which those are is `tools_app.media`'s word. To be called outside transactions: a file is opened in a
process of its own, which takes its time; asked again of the same file within one, it costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.content import Block
from harness.errors import Invalid
from harness.faults import below, place
from tools_app.media import first_fault


def check_media(content: Sequence[Block], *, field: str = "content") -> None:
    """Raises Invalid naming the block, what is wrong with it, and what to do."""
    fault = first_fault(content)
    if fault is not None:
        where = below(below(field, place(fault.place)), fault.field)
        raise Invalid(fault.message, field=where, hint=fault.hint)
