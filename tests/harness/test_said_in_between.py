"""What others say between a run's last look at the log and what it stores: it is heard before anything
is done. The same with real tables, at every append: `tests.conversations.test_between_appends`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.agentconfig import CustomTool, ToolRule
from harness.content import Text, text_of
from harness.events import (
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    ApprovalRequested,
    CallHandedOut,
    Event,
    InputTaken,
    MessageWithdrawn,
    OutcomeUnknown,
    SessionStatusIdle,
    SpanToolStart,
    UserCustomToolResult,
    UserInterrupt,
    UserMessage,
    UserToolConfirmation,
    answered_call,
)
from harness.history import Entry
from harness.tools import Effect
from providers.scripted import call, reply
from tests.harness.bench import Bench, make_tool, noting, said, scripted
from tests.standins.journal import MemoryJournal

ASKS = (ToolRule(tool="*", permission="always_ask"),)


def right_before(
    bench: Bench, kind: type[Event], words: Callable[[MemoryJournal], Sequence[Event]]
) -> None:
    """Have somebody else say these words right before the first append of an event of `kind`."""
    said_so: list[bool] = []

    def post(journal: MemoryJournal, entries: Sequence[Entry]) -> None:
        if not said_so and any(isinstance(entry.event, kind) for entry in entries):
            said_so.append(True)
            journal.post(*words(journal))

    bench.journal.hook = post


def first(journal: MemoryJournal, kind: type[Event]) -> str:
    return next(entry.uid for entry in journal.entries if isinstance(entry.event, kind))


def acting(ran: list[str], **more: Any) -> Bench:
    tool = make_tool("act", noting(ran), effect=Effect.OUTSIDE)
    return Bench(scripted(reply(call("act", text="x")), reply("Over.")), [tool], **more)


async def test_a_call_is_not_begun_after_an_interrupt():
    ran: list[str] = []
    bench = acting(ran)
    right_before(bench, SpanToolStart, lambda _journal: [UserInterrupt()])

    await bench.run(said("Go."))

    assert ran == []
    assert bench.events(SpanToolStart) == []
    assert [event.outcome for event in bench.events(AgentToolResult)] == ["stopped"]


async def test_a_call_is_not_handed_out_after_an_interrupt():
    ran: list[str] = []
    tool = make_tool("act", noting(ran), effect=Effect.OUTSIDE, handed_out=lambda g: ("act", g))
    bench = Bench(scripted(reply(call("act", text="x"))), [tool])
    right_before(bench, CallHandedOut, lambda _journal: [UserInterrupt()])

    await bench.run(said("Go."))

    assert bench.events(CallHandedOut) == []
    assert [event.outcome for event in bench.events(AgentToolResult)] == ["stopped"]


@pytest.mark.parametrize("result", ["allow", "deny"])
async def test_an_answer_that_comes_right_before_the_rest_is_acted_on_by_the_same_run(result: str):
    ran: list[str] = []
    bench = acting(ran, rules=ASKS)

    def answer(journal: MemoryJournal) -> list[Event]:
        return [UserToolConfirmation(tool_use_id=first(journal, AgentToolUse), result=result)]

    right_before(bench, SessionStatusIdle, answer)
    await bench.run(said("Go."))

    assert ran == (["x"] if result == "allow" else [])
    assert len(bench.events(SessionStatusIdle)) == 1, "nobody had to be waited for"
    assert [text_of(event.content) for event in bench.events(AgentMessage)] == ["Over."]


async def test_an_unknown_outcome_that_is_told_right_before_the_rest_is_asked_about():
    ran: list[str] = []
    bench = acting(ran, rules=ASKS)

    def lost(journal: MemoryJournal) -> list[Event]:
        return [OutcomeUnknown(tool_use_id=first(journal, AgentToolUse), effect="outside")]

    right_before(bench, SessionStatusIdle, lost)
    await bench.run(said("Go."))

    types = bench.journal.types
    assert types.index("x.approval_requested") < types.index("session.status_idle")
    assert len(bench.events(ApprovalRequested)) == 1


async def test_a_programs_result_and_a_stop_at_once_make_one_answer():
    stock = CustomTool(name="stock", description="How many are left.")
    bench = Bench(scripted(reply(call("stock", article="A"))), config={"custom_tools": (stock,)})
    await bench.run(said("Go."))
    (use,) = [
        entry for entry in bench.journal.entries if entry.event.type.endswith("custom_tool_use")
    ]
    result = UserCustomToolResult(custom_tool_use_id=use.uid, content=(Text(text="Seven."),))
    right_before(bench, AgentToolResult, lambda _journal: [result])

    await bench.run(UserInterrupt())

    answers = [event for event in bench.events() if answered_call(event) == use.uid]
    assert answers == [result]
    assert bench.events(SessionStatusIdle)[-1].interrupted


async def test_a_message_that_is_withdrawn_right_before_it_is_taken_is_not_answered():
    bench = acting([])

    def withdrawn(journal: MemoryJournal) -> list[Event]:
        return [MessageWithdrawn(event_id=first(journal, UserMessage))]

    right_before(bench, InputTaken, withdrawn)
    await bench.run(said("Go."))

    assert bench.requests == []
    assert bench.events(InputTaken) == []
