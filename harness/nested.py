"""Calls that a call makes: each is an event of the log like any other, judged, asked about and carried out in
the same way, and no part of the dialogue with the model.

A call whose nested call has to wait for somebody is put down, and begun anew when that is answered: what it
asked for before is told it from the log, in the same order, and is not carried out again. Whoever asks for
something else the second time is stopped. How one nested call is answered is `calls`' part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from harness.errors import ToolError
from harness.events import (
    AgentToolUse,
    ResultOutcome,
    ToolResult,
    UserCustomToolResult,
    UserToolResult,
    dump,
)
from harness.history import History, NestedCall
from harness.tools import NestedAnswer, PutDown

T = TypeVar("T")

DEPTH = 5
"""Composed calls inside each other, the outermost counted; one more is refused."""
MOST = 200
"""Calls that one call makes."""


class Diverged(ToolError):
    """Begun anew, the call asks for something else than the first time."""

    code = "replay_diverged"


class Nested:
    """The calls of one attempt at one call, in order, one at a time."""

    def __init__(
        self,
        uid: str,
        history: History,
        begin: Callable[[str, Mapping[str, Any]], Awaitable[str]],
        settle: Callable[[str], Awaitable[None]],
    ) -> None:
        """`begin` stores a call and answers its id; `settle` has it answered, or raises `PutDown`."""
        self._uid = uid
        self._history = history
        self._begin = begin
        self._settle = settle
        self._place = 0
        self.failure: Exception | None = None
        """What kept the log from being written, or anything else that is no matter of the call's."""
        self._one_at_a_time = asyncio.Lock()

    async def call(self, name: str, given: Mapping[str, Any]) -> NestedAnswer:
        """Raises `PutDown`, `Diverged`, and ToolError for more calls than one may make."""
        async with self._one_at_a_time:
            # As the log will have it.
            given = dump(AgentToolUse(name=name, input=dict(given)))["input"]
            place, self._place = self._place, self._place + 1
            made = self._history.nested_in(self._uid)
            if place < len(made):
                uid = _same(made[place], name, given, place)
            elif place >= MOST:
                raise ToolError(f"One call makes at most {MOST} calls of its own.")
            else:
                uid = await self._through(self._begin(name, given))
            await self._through(self._settle(uid))
            known = {each.uid: each for each in self._history.nested_in(self._uid)}
            answer = known[uid].answer if uid in known else None
            if answer is None:
                raise PutDown
            return _answer_of(answer)

    async def _through(self, work: Awaitable[T]) -> T:
        """Its result. What it fails with ends the run, past a handler that could take it for its own."""
        try:
            return await work
        except (PutDown, ToolError):
            raise
        except Exception as problem:
            self.failure = problem
            raise PutDown from problem

    def require_whole(self) -> None:
        """At the end of an attempt. Raises `Diverged` where it asked for less than the one before it."""
        made = len(self._history.nested_in(self._uid))
        if self._place < made:
            raise Diverged(
                f"Begun anew, it ended after {self._place} calls of its own; before, it had made {made}.",
                hint=REPLAYED,
            )


REPLAYED = (
    "What a call has done before a person was asked is told it again from the log, so its code has to ask "
    "for the same in the same order: it must not depend on time, chance or what other programs do."
)


def _same(made: NestedCall, name: str, given: Mapping[str, Any], place: int) -> str:
    if made.use.name == name and made.use.input == given:
        return made.uid
    what = "other input for" if made.use.name == name else f"{name} in place of"
    raise Diverged(
        f"Begun anew, its call {place + 1} asks for {what} {made.use.name}.", hint=REPLAYED
    )


def _answer_of(answer: ToolResult) -> NestedAnswer:
    outcome: ResultOutcome = "ok"
    if not isinstance(answer, UserCustomToolResult | UserToolResult):
        outcome = answer.outcome
    return NestedAnswer(answer.content, answer.is_error, outcome)
