"""The effect that must not happen twice: one line in a file for each time it does."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.conf import settings

from harness.tools import Effect, Tool, ToolContext


def count(context: ToolContext, _arguments: dict[str, Any]) -> str:
    path = Path(getattr(settings, "KILLING_EFFECTS"))  # noqa: B009 - known to the matrix only
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{context.call_id}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)
    return "counted"


TOOLS = (
    Tool(
        name="count",
        description="Happens outside, and is counted.",
        input_schema={"type": "object", "additionalProperties": False},
        handler=count,
        effect=Effect.OUTSIDE,
    ),
)
