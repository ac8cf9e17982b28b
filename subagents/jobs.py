"""The jobs of subagents: doorways without logic."""

from __future__ import annotations

from jobs.engine import engine
from jobs.registry import job

from . import asks, ending, starting, stopping
from .projection import ASKS, BEGIN, END, TELL

SWEEP = "subagents.sweep"


@job(BEGIN)
async def begin(pk: int) -> None:
    # Files are copied, which may take a while.
    await engine.in_tool_thread(starting.begin, pk)


@job(TELL)
async def tell(pk: int) -> None:
    await engine.in_tool_thread(ending.tell, pk)


@job(END)
async def end_asked(parent: int) -> None:
    await engine.in_database(stopping.end_asked, parent)


@job(ASKS)
async def tell_asks(root: int) -> None:
    await engine.in_database(asks.tell_asks, root)


@job(SWEEP, every="AGENTSITE_SWEEP_SECONDS")
async def sweep() -> None:
    """Do what a process that died left undone: begin, stop, tell."""
    await engine.in_tool_thread(starting.begin_left)
    await engine.in_database(stopping.end_left)
    await engine.in_tool_thread(ending.tell_left)
    await engine.in_database(asks.tell_left)
