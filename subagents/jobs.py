"""The jobs of subagents: doorways without logic.

Those that an agent asks for in one reply begin, and end, a few at a time and with gaps: each is tens of
milliseconds of work, for which whoever chats meanwhile would else wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from jobs.engine import engine
from jobs.registry import job
from jobs.shares import Shares

from . import asks, ending, starting, stopping
from .projection import ASKS, BEGIN, END, TELL

SWEEP = "subagents.sweep"
AT_ONCE = 2
"""Begins, and ends, of one tree that a process is at; one alone would wait where another copies files."""
LONGEST_GAP = 0.02
_at_work = Shares(AT_ONCE)


@job(BEGIN)
async def begin(pk: int, root: int) -> None:
    # Files are copied, which may take a while.
    await _in_turn((BEGIN, root), starting.begin, pk)


@job(TELL)
async def tell(pk: int, root: int) -> None:
    await _in_turn((TELL, root), ending.tell, pk)


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


async def _in_turn(line: tuple[str, int], work: Callable[[int], None], pk: int) -> None:
    await _at_work.run(line, engine.in_tool_thread, partial(_with_a_gap, work, pk))


def _with_a_gap(work: Callable[[int], None], pk: int) -> None:
    """Before the next one begins in its place, others have the processor for half as long as it took."""
    began = time.monotonic()
    work(pk)
    time.sleep(min((time.monotonic() - began) / 2, LONGEST_GAP))
