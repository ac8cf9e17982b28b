"""Wakes that an agent asks for: so many in a turn, a day ahead at most, by their urgency, and not lost to a
request that fails."""

from __future__ import annotations

import pytest

from harness.content import text_of
from harness.errors import Overloaded
from harness.events import (
    AgentMessage,
    AgentToolResult,
    SessionStatusIdle,
    SessionStatusRescheduled,
    WakeDue,
    WakeRequested,
)
from providers.scripted import Call, call, reply
from tests.harness.bench import Bench, said, scripted
from tools_app.builtin.wakes import MAX_DELAY, TOOLS


def results(bench: Bench) -> list[str]:
    return [text_of(event.content) for event in bench.events(AgentToolResult)]


def later(seconds: int, reason: str = "r") -> Call:
    return call("continue_later", seconds=seconds, reason=reason)


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_turn_asks_for_three_wakes_and_no_more(at_once: bool) -> None:
    wanted = [later(60, f"look {number}") for number in range(4)]
    asking = [reply(*wanted)] if at_once else [reply(each) for each in wanted]
    bench = Bench(scripted(*asking, reply("Resting.")), TOOLS)
    await bench.run(said("Watch it."))
    assert [event.reason for event in bench.events(WakeRequested)] == ["look 0", "look 1", "look 2"]
    assert "At most 3 wakes" in results(bench)[-1]


async def test_a_wake_is_a_day_ahead_at_most() -> None:
    bench = Bench(
        scripted(reply(later(MAX_DELAY + 1)), reply(later(MAX_DELAY)), reply("So.")), TOOLS
    )
    await bench.run(said("Watch it."))
    assert [event.delay_seconds for event in bench.events(WakeRequested)] == [24 * 60 * 60]


async def test_wakes_that_are_due_come_behind_people_and_the_most_urgent_first() -> None:
    bench = Bench(scripted(*(reply(f"{number}.") for number in range(4))), TOOLS)
    await bench.run(
        WakeDue(reason="some day", priority="low"),
        WakeDue(reason="soon", priority="normal"),
        said("A person."),
        WakeDue(reason="now", priority="high"),
    )
    asked = [str(request.messages[-1]) for request in bench.requests]
    for order, words in enumerate(("A person.", "now", "soon", "some day")):
        assert words in asked[order]


async def test_a_wake_whose_run_failed_is_due_again_shortly_after() -> None:
    bench = Bench(scripted(Overloaded("Busy."), reply("Looked.")), TOOLS)
    await bench.run(WakeDue(reason="look"))
    [put_off] = bench.events(SessionStatusRescheduled)
    assert 1 <= put_off.delay_seconds <= 2
    assert not bench.events(SessionStatusIdle)
    await bench.run()
    assert [text_of(event.content) for event in bench.events(AgentMessage)] == ["Looked."]
    assert "look" in str(bench.requests[-1].messages[-1])
    assert len(bench.events(SessionStatusIdle)) == 1
