"""What this app offers to agents. `tools_app.catalogue` collects these from every app."""

from __future__ import annotations

from harness.tools import Tool
from tools_app.builtin import (
    ask,
    background,
    compacting,
    files,
    plan,
    reckoning,
    rereading,
    search,
    sessionmemory,
    shared,
    shell,
    symbols,
    think,
    todos,
    wakes,
    web,
)

TOOLS: tuple[Tool, ...] = (
    *files.TOOLS,
    *search.TOOLS,
    *symbols.TOOLS,
    *think.TOOLS,
    *todos.TOOLS,
    *plan.TOOLS,
    *wakes.TOOLS,
    *ask.TOOLS,
    *web.TOOLS,
    *reckoning.TOOLS,
    *rereading.TOOLS,
    *compacting.TOOLS,
    *sessionmemory.TOOLS,
    *shell.TOOLS,
    *background.TOOLS,
    *shared.TOOLS,
)
