"""What a call tells another server of the trace that it is part of, so that the other's spans stand below it.

Which trace that is, and whether anybody gathers them, is for the runner's side to say, reached through
`Trace` among a context's extras.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.history import Entry
from harness.tools import ToolContext

EXTRA = "trace"
"""The name of the `Trace` among a context's extras; where nobody gathers traces there is none."""
HEADER = "traceparent"
"""As the W3C calls it, in headers and among what the Model Context Protocol sends along (`_meta`)."""

Trace = Callable[[str, Sequence[Entry]], str]
"""The `traceparent` of the call of an id, as the log tells of it; empty: none. In a database thread."""


async def traceparent_of(context: ToolContext) -> str:
    """Empty: nobody gathers traces, and nothing is to be told of them."""
    trace: Trace | None = context.extras.get(EXTRA)
    if trace is None:
        return ""
    told: str = await context.offload(trace, context.call_id, context.entries)
    return told
