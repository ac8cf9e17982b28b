"""A summary that somebody asked for: done once, at a free moment, and never at the price of anything."""

from __future__ import annotations

import pytest

from harness.agentconfig import Limits, ToolRule
from harness.content import text_of
from harness.errors import BadRequest, Overloaded
from harness.events import (
    AgentMessage,
    AgentThreadContextCompacted,
    CompactionRequested,
    CompactionSkipped,
    EndTurn,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestStart,
    UserToolConfirmation,
)
from harness.history import History
from harness.messages import Usage
from providers.scripted import Scripted, call, reply
from tests.harness.bench import Bench, make_tool, said, scripted
from tools_app.builtin.compacting import TOOLS as COMPACTING
from tools_app.builtin.rereading import TOOLS as REREADING

ASKED = CompactionRequested(focus="the prices")


ALL = (ToolRule(tool="*"),)


async def talked(*more, tools=(), rules=ALL) -> Bench:
    """Four short turns, at rest."""
    bench = Bench(scripted("One.", "Two.", "Three.", "Four.", *more), tools=tools, rules=rules)
    for text in ("1", "2", "3", "4"):
        await bench.run(said(text))
    return bench


def history_of(bench: Bench) -> History:
    return History(bench.journal.entries)


async def test_the_focus_reaches_the_summariser_and_the_next_request_begins_with_the_summary():
    bench = await talked("They counted.", "Five.")
    await bench.run(ASKED)
    (event,) = bench.events(AgentThreadContextCompacted)
    assert (event.summary, event.focus, event.fallback) == ("They counted.", "the prices", False)
    assert "the prices" in bench.requests[-1].system
    assert bench.requests[-1].purpose == "compaction"
    assert isinstance(bench.events(SessionStatusIdle)[-1].stop_reason, EndTurn)
    assert not history_of(bench).has_work
    await bench.run(said("5"))
    last = bench.requests[-1]
    assert "They counted." in str(last.messages[0])
    assert "Two." in str(last.messages), "the last three requests stay as they were"
    assert "One." not in str(last.messages)


@pytest.mark.parametrize("tools", [(), REREADING])
async def test_with_a_summary_the_tool_is_named_that_reads_what_it_replaced(tools):
    bench = await talked("They counted.", "Five.", tools=tools)
    await bench.run(ASKED)
    await bench.run(said("5"))
    opening = str(bench.requests[-1].messages[0])
    assert ("read_events shows them" in opening) is bool(tools)


async def test_too_little_to_summarise_costs_nothing():
    bench = Bench(scripted("One."))
    await bench.run(said("1"))
    await bench.run(ASKED)
    assert [each.reason for each in bench.events(CompactionSkipped)] == ["too_short"]
    assert len(bench.requests) == 1


@pytest.mark.parametrize("problem", [BadRequest("No."), Overloaded("Busy.")])
async def test_a_summariser_that_fails_takes_nothing_from_the_dialogue(problem):
    bench = await talked(problem, "Five.")
    await bench.run(ASKED)
    (skipped,) = bench.events(CompactionSkipped)
    assert (skipped.reason, skipped.detail) == ("failed", problem.message)
    assert not bench.events(AgentThreadContextCompacted)
    await bench.run(said("5"))
    assert "One." in str(bench.requests[-1].messages)


async def test_the_agent_asks_for_it_and_it_is_done_before_its_next_step():
    bench = await talked(
        reply(call("compact", focus="the\nnumbers"), call("look", text="x")),
        "They counted.",
        "Done.",
        tools=[make_tool("look"), *COMPACTING],
    )
    await bench.run(said("Go on."))
    (asked,) = bench.events(CompactionRequested)
    assert (asked.focus, asked.by_agent) == ("the numbers", True)
    before, after = bench.requests[-2:]
    assert (before.purpose, after.purpose) == ("compaction", "main")
    assert "look: x" in str(after.messages), "the step's calls keep their answers"
    assert "They counted." in str(after.messages[0])
    assert text_of(bench.events(AgentMessage)[-1].content) == "Done."


async def test_a_call_that_waits_for_a_person_goes_on_waiting_and_keeps_its_place():
    rules = (ToolRule(tool="*"), ToolRule(tool="look", permission="always_ask"))
    bench = await talked(
        reply(call("look", text="x")),
        "They counted.",
        "Done.",
        tools=[make_tool("look")],
        rules=rules,
    )
    await bench.run(said("Go on."))
    (waiting,) = history_of(bench).unanswered()
    await bench.run(ASKED)
    assert len(bench.events(AgentThreadContextCompacted)) == 1
    assert isinstance(bench.events(SessionStatusIdle)[-1].stop_reason, RequiresAction)
    assert not history_of(bench).has_work, "nothing moves until she answers"
    await bench.run(UserToolConfirmation(tool_use_id=waiting.uid, result="allow"))
    assert "look: x" in str(bench.requests[-1].messages[-1])
    assert "They counted." in str(bench.requests[-1].messages[0])


async def test_after_a_failure_a_summary_changes_nothing_about_trying_again():
    bench = await talked(BadRequest("No."), "They counted.", "Five.")
    await bench.run(said("5"))
    assert history_of(bench).may_retry
    await bench.run(ASKED)
    assert len(bench.events(AgentThreadContextCompacted)) == 1
    assert len(bench.events(SessionStatusIdle)) == 5, "no rest takes the place of the failure"
    assert history_of(bench).may_retry


async def test_a_process_that_dies_at_any_append_pays_for_one_summary_and_comes_to_rest():
    class Died(Exception):
        pass

    whole = await talked("They counted.")
    await whole.run(ASKED)
    for at in range(1, whole.journal.appends + 1):
        bench = await talked(*["They counted."] * 2)
        appends = 0

        def die(_journal, _entries, at=at):
            nonlocal appends
            appends += 1
            if appends == at:
                raise Died

        bench.journal.hook = die
        with pytest.raises(Died):
            await bench.run(ASKED)
        bench.journal.hook = None
        await bench.run()
        (event,) = bench.events(AgentThreadContextCompacted)
        ended = [
            start.purpose
            for start in bench.events(SpanModelRequestStart)
            if start.purpose == "compaction"
        ]
        paid = bench.requests[4:]
        # A request whose end was never stored may have been paid for; one that was stored is not repeated.
        assert len(paid) == len(ended) or len(paid) == len(ended) - 1
        assert event.summary == "They counted."
        assert not history_of(bench).has_work
        assert not history_of(bench).running
        running, idle = bench.events(SessionStatusRunning), bench.events(SessionStatusIdle)
        assert len(running) == len(idle) == 5


async def test_more_compactions_than_three_are_made_in_one_long_turn():
    """A turn of many steps once stopped making room after the third."""

    def answer(request):
        return reply("So far so good.") if request.purpose == "compaction" else next(replies)

    steps = [
        reply("word " * 400, call("look", text="x"), usage=Usage(600 * (n % 9), 10))
        for n in range(60)
    ]
    replies = iter([*steps, reply("Done.")])
    bench = Bench(
        Scripted(answer),
        [make_tool("look")],
        limits=Limits(context_window=8_000, steps=100, token_budget=10**9),
    )
    await bench.run(said("Go."))
    assert text_of(bench.events(AgentMessage)[-1].content) == "Done."
    assert len(bench.events(AgentThreadContextCompacted)) > 3
    assert all(s.plan.free >= 0 for s in bench.events(SpanModelRequestStart) if s.plan)
