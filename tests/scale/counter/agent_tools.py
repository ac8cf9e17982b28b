"""A tool whose every performance is counted outside of the database, so that a repeated one shows."""

from __future__ import annotations

import os
import time
from typing import Any

from harness.tools import Effect, Tool, ToolContext


def count(context: ToolContext, _arguments: dict[str, Any]) -> str:
    with open(os.environ["TEST_COUNTER"], "a") as file:  # noqa: PTH123 - opened for appending
        file.write(f"{context.call_id}\n")
    time.sleep(0.3)  # long enough to be killed in
    return "Counted."


TOOLS = (
    Tool(
        name="count",
        description="Counts.",
        input_schema={"type": "object", "properties": {}},
        handler=count,
        effect=Effect.WORKSPACE,
    ),
)
