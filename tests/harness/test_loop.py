"""The loop: steps, limits, continuations, failures, stops, over a scripted provider."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agentconfig import Features, Limits, ToolRule
from harness.content import Text, text_of
from harness.errors import (
    BadCredentials,
    BrokenStream,
    LeaseLost,
    Overloaded,
    ProviderTimedOut,
    RateLimited,
    ToolError,
)
from harness.events import (
    AgentMessage,
    AgentThinking,
    AgentToolResult,
    AgentToolUse,
    BudgetReached,
    EndTurn,
    InputTaken,
    Keepsake,
    MessageEdited,
    MessageSteered,
    MessageWithdrawn,
    OutcomeUnknown,
    Refusal,
    RequiresAction,
    RetriesExhausted,
    RetryRequested,
    SessionError,
    SessionStatusIdle,
    SessionStatusRescheduled,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanToolStart,
    TableDisplay,
    Todo,
    TodosUpdated,
    UserInterrupt,
    UserToolConfirmation,
    WakeDue,
    WakeRequested,
    dump,
    load,
)
from harness.history import Entry
from harness.loop import retry_delay
from harness.messages import Lull, ModelRequest, Piece, ReplyDone, TextDelta, TextDone, Usage
from harness.ports import LiveBlock
from harness.tools import Effect, ToolOutput
from providers.scripted import Fail, Hold, Scripted, call, garbled_call, reply, say, think
from tests.harness.bench import Bench, Heard, make_tool, noting, noting_ids, said, scripted
from tests.patience import PATIENCE
from tools_app.builtin import wakes


def texts(bench: Bench) -> list[str]:
    return [text_of(event.content) for event in bench.events(AgentMessage)]


def results(bench: Bench) -> list[str]:
    return [text_of(event.content) for event in bench.events(AgentToolResult)]


def idles(bench: Bench) -> list[SessionStatusIdle]:
    return bench.events(SessionStatusIdle)


async def test_two_tool_steps_and_an_answer_make_three_model_calls():
    """The turn ends at the first reply without calls."""
    bench = Bench(
        scripted(
            reply("Looking.", call("look", text="a")), reply(call("look", text="b")), reply("Done.")
        ),
        [make_tool("look")],
    )
    await bench.run(said("Go."))
    assert len(bench.requests) == 3
    assert texts(bench) == ["Looking.", "Done."]
    assert results(bench) == ["look: a", "look: b"]
    assert [idle.stop_reason for idle in idles(bench)] == [EndTurn()]


async def test_the_end_is_judged_by_the_absence_of_calls_and_not_by_the_stop_reason():
    """Some services say end_turn although they ask for a call."""
    bench = Bench(
        scripted(reply(call("look", text="a"), end="end_turn"), reply("Done.")), [make_tool("look")]
    )
    await bench.run(said("Go."))
    assert texts(bench) == ["Done."]


async def test_calls_of_one_step_run_side_by_side_and_their_results_keep_call_order():
    """The first call can only end after the second has begun."""
    second_began = asyncio.Event()

    async def first(_context, _arguments):
        await asyncio.wait_for(second_began.wait(), PATIENCE)
        return "first"

    async def second(_context, _arguments):
        second_began.set()
        return "second"

    bench = Bench(
        scripted(reply(call("one", text=""), call("two", text="")), reply("Done.")),
        [make_tool("one", first), make_tool("two", second)],
    )
    await bench.run(said("Go."))
    assert results(bench) == ["second", "first"], "stored as they came"
    answers = bench.requests[1].messages[-1].parts
    assert [text_of(answer.content) for answer in answers] == ["first", "second"]


async def test_two_writes_of_one_step_run_one_after_another_in_call_order():
    """Two edits of one file side by side would lose one."""
    running = 0
    order: list[str] = []

    async def write(_context, arguments):
        nonlocal running
        running += 1
        assert running == 1
        await asyncio.sleep(0)
        order.append(arguments["text"])
        running -= 1
        return "written"

    bench = Bench(
        scripted(reply(*(call("write", text=str(n)) for n in range(5))), reply("Done.")),
        [make_tool("write", write, effect=Effect.WORKSPACE)],
    )
    await bench.run(said("Go."))
    assert order == ["0", "1", "2", "3", "4"]


async def test_the_last_three_steps_carry_a_hint_that_is_not_stored():
    """In the request only, at its end, so that the cached beginning stays the same."""
    bench = Bench(
        scripted(*(reply(call("look", text=str(n))) for n in range(5)), reply("Summary.")),
        [make_tool("look")],
        limits=Limits(steps=5),
    )
    await bench.run(said("Go."))
    hinted = [
        any(
            "more model steps are left" in getattr(part, "text", "")
            for part in request.messages[-1].parts
        )
        for request in bench.requests
    ]
    assert hinted == [False, False, True, True, True, False]
    assert len({request.system for request in bench.requests}) == 1
    stored = str([event.model_dump() for event in bench.events()])
    assert "more model steps are left" not in stored


@pytest.mark.parametrize("effect", [Effect.READ, Effect.WORKSPACE])
async def test_at_the_step_limit_one_call_without_tools_gives_a_closing_summary(effect: Effect):
    """Also when only reading tools ran."""
    bench = Bench(
        scripted(
            reply(call("look", text="a")), reply(call("look", text="b")), reply("Here I stopped.")
        ),
        [make_tool("look", effect=effect)],
        limits=Limits(steps=2),
    )
    await bench.run(said("Go."))
    assert [request.tool_choice for request in bench.requests] == ["auto", "auto", "none"]
    assert texts(bench) == ["Here I stopped."]
    assert [idle.stop_reason for idle in idles(bench)] == [EndTurn()]


async def test_a_call_in_spite_of_the_step_limit_does_not_start_another_step():
    bench = Bench(
        scripted(reply(call("look", text="a")), reply(call("look", text="b"))),
        [make_tool("look")],
        limits=Limits(steps=1),
    )
    await bench.run(said("Go."))
    assert len(bench.requests) == 2
    assert idles(bench)[-1].stop_details.code == "step_limit"


async def test_a_truncated_answer_continues_three_times_and_its_pieces_join():
    bench = Bench(
        scripted(
            reply("One, ", end="max_tokens"),
            reply("two, ", end="max_tokens"),
            reply("three, ", end="max_tokens"),
            reply("four.", end="end_turn"),
        )
    )
    await bench.run(said("Count."))
    assert len(bench.requests) == 4
    pieces = bench.entries(AgentMessage)
    assert "".join(text_of(entry.event.content) for entry in pieces) == "One, two, three, four."
    assert [entry.event.continues for entry in pieces] == [None] + [pieces[0].uid] * 3
    assert idles(bench)[-1].stop_details is None


async def test_a_fourth_continuation_is_not_asked_for_and_the_person_is_told_why():
    """1 + 3 calls when every answer is truncated."""
    bench = Bench(scripted(*(reply(f"{n} ", end="max_tokens") for n in range(9))))
    await bench.run(said("Count."))
    assert len(bench.requests) == 4
    assert idles(bench)[-1].stop_details.code == "output_limit"


async def test_the_token_budget_is_checked_before_each_call():
    """The call that would be made over the budget is not made."""
    big = Usage(input_tokens=700, output_tokens=300)
    bench = Bench(
        scripted(*(reply(call("look", text="a"), usage=big) for _ in range(9))),
        [make_tool("look")],
        limits=Limits(token_budget=2_000),
    )
    await bench.run(said("Go."))
    assert len(bench.requests) == 2
    idle = idles(bench)[-1]
    assert idle.stop_reason == BudgetReached()
    assert "2,000" in idle.stop_details.message
    assert idle.stop_details.hint


async def test_going_on_after_a_reached_budget_starts_a_new_one():
    big = Usage(input_tokens=1_500, output_tokens=500)
    bench = Bench(
        scripted(reply(call("look", text="a"), usage=big), reply("Done.")),
        [make_tool("look")],
        limits=Limits(token_budget=2_000),
    )
    await bench.run(said("Go."))
    assert texts(bench) == []
    await bench.run(RetryRequested())
    assert texts(bench) == ["Done."]


async def test_wall_clock_is_a_limit_as_well():
    clock = iter(range(0, 10_000, 50))
    bench = Bench(
        scripted(*(reply(call("look", text="a")) for _ in range(99))),
        [make_tool("look")],
        limits=Limits(wall_clock_seconds=600),
        clock=lambda: float(next(clock)),
    )
    await bench.run(said("Go."))
    assert idles(bench)[-1].stop_details.code == "wall_clock"


async def test_a_broken_stream_keeps_what_was_said_and_tells_the_true_cause():
    bench = Bench(
        scripted(reply(say("Half of it", Fail(BrokenStream("The connection was reset.")))))
    )
    await bench.run(said("Go."))
    (message,) = bench.events(AgentMessage)
    assert text_of(message.content) == "Half of it"
    assert message.interrupted
    (error,) = bench.events(SessionError)
    assert error.error.message == "The connection was reset."
    assert error.error.code == "broken_stream"
    assert [idle.stop_reason for idle in idles(bench)] == [RetriesExhausted()]
    assert not bench.live.open


async def test_after_a_failure_a_retry_asks_the_model_to_go_on():
    bench = Bench(scripted(reply(say("Half", Fail(BrokenStream("Cut.")))), reply("The rest.")))
    await bench.run(said("Go."))
    await bench.run(RetryRequested())
    assert texts(bench) == ["Half", "The rest."]
    roles = [message.role for message in bench.requests[-1].messages]
    assert roles == ["user", "assistant", "user"]


async def test_a_permanent_failure_makes_one_call_and_holds_the_queue():
    bench = Bench(scripted(BadCredentials("The key was refused.", hint="Enter another.")))
    await bench.run(said("One."), said("Two."))
    assert len(bench.requests) == 1
    assert bench.events(SessionError)[0].error.hint == "Enter another."
    assert len(bench.events(InputTaken)) == 1, "the second message still waits"
    await bench.run()
    assert len(bench.requests) == 1, "nothing runs again by itself"


async def test_a_reply_without_an_end_is_cut_and_not_asked_for_again(monkeypatch):
    monkeypatch.setattr("harness.reply.MOST_CHARACTERS", 100)
    bench = Bench(scripted(reply(say(*(["x" * 20] * 20)))))
    await bench.run(said("Go."))
    assert len(bench.requests) == 1
    assert texts(bench) == ["x" * 100], "what had come is kept"
    assert "longer than 100 characters" in bench.events(SessionError)[0].error.message


async def test_an_error_that_no_provider_may_raise_ends_the_turn_and_nothing_more():
    bench = Bench(scripted(ZeroDivisionError("oops")))
    await bench.run(said("Go."))
    assert bench.events(SessionError)[0].error.code == "provider_error"
    assert len(idles(bench)) == 1


async def test_in_a_lull_a_stride_is_taken_before_the_reply_is_read_on():
    class Trickling:
        name = "scripted"

        async def stream(self, request: ModelRequest) -> AsyncIterator[Piece]:
            for piece in (TextDelta(0, "Half "), Lull(), TextDelta(0, "of it"), Lull()):
                read.append(piece)
                yield piece
            yield TextDone(0, "Half of it")
            yield ReplyDone("end_turn", Usage())

    @dataclass
    class Striding(Heard):
        began: asyncio.Event = field(default_factory=asyncio.Event)
        may_go_on: asyncio.Event = field(default_factory=asyncio.Event)
        strides: int = 0

        async def stride(self) -> None:
            self.strides += 1
            self.began.set()
            await self.may_go_on.wait()

    read: list[Piece] = []
    live = Striding()
    bench = Bench(Trickling(), live=live)
    run = bench.start(said("Go."))
    async with asyncio.timeout(PATIENCE):
        await live.began.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        assert read == [TextDelta(0, "Half "), Lull()]
        live.may_go_on.set()
        await run
    assert live.strides == 2
    assert texts(bench) == ["Half of it"]


async def test_a_refusal_is_a_rest_of_its_own():
    bench = Bench(scripted(reply(end="refusal", detail="Not this.")))
    await bench.run(said("Go."))
    assert idles(bench)[-1].stop_reason == Refusal()
    assert idles(bench)[-1].stop_details.message == "Not this."


async def test_a_paused_reply_is_asked_to_go_on():
    bench = Bench(scripted(reply("Still", end="pause"), reply("here.")))
    await bench.run(said("Go."))
    assert texts(bench) == ["Still", "here."]


# --- tools ----------------------------------------------------------------------------------------


async def test_a_call_that_breaks_the_schema_does_not_run_and_says_where():
    ran: list[str] = []
    bench = Bench(
        scripted(reply(call("look", texts="a")), reply("Done.")),
        [make_tool("look", noting(ran))],
    )
    await bench.run(said("Go."))
    assert not ran
    (result,) = bench.events(AgentToolResult)
    assert result.is_error
    assert "'text' is a required property" in text_of(result.content)
    assert texts(bench) == ["Done."]


@pytest.mark.parametrize(
    "problem", [KeyError("k"), RuntimeError("r"), RecursionError("deep"), UnicodeError("u")]
)
async def test_whatever_a_tool_raises_becomes_a_result_and_the_turn_goes_on(problem: Exception):
    """Of any class."""

    def broken(_context, _arguments):
        raise problem

    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done.")), [make_tool("look", broken)]
    )
    await bench.run(said("Go."))
    (result,) = bench.events(AgentToolResult)
    assert result.is_error
    assert type(problem).__name__ in text_of(result.content)
    assert texts(bench) == ["Done."]


async def test_whatever_signs_a_tool_answers_with_the_model_reads_what_the_log_keeps():
    odd, kept = "a\ud800b\ud83d\ude00\0", "a\ufffdb\N{GRINNING FACE}\ufffd"

    def look(_context, arguments):
        if arguments["text"] == "fail":
            raise ToolError(odd, hint=odd)
        return ToolOutput(
            (Text(text=odd),),
            display=TableDisplay(columns=(odd,), rows=((odd,),)),
            events=(TodosUpdated(todos=(Todo(content=odd, active_form=odd),)),),
            keeps=Keepsake(name="it", text=odd),
            untrusted_by=odd,
        )

    provider = scripted(
        reply(call("look", text="go")), reply(call("look", text="fail")), reply("Done.")
    )
    bench = Bench(provider, [make_tool("look", look)])
    await bench.run(said("Go."))
    answered, failed = bench.events(AgentToolResult)
    assert text_of(answered.content) == answered.untrusted_by == kept
    assert answered.display == TableDisplay(columns=(kept,), rows=((kept,),))
    assert answered.keeps == Keepsake(name="it", text=kept)
    assert [todo.content for todo in bench.events(TodosUpdated)[0].todos] == [kept]
    assert text_of(failed.content) == f"{kept}\n{kept}"
    assert all(load(dump(entry.event)) == entry.event for entry in bench.journal.entries)


async def test_arguments_that_are_no_json_object_are_answered_and_not_run():
    bench = Bench(
        scripted(reply(garbled_call("look", '{"text": ')), reply("Done.")), [make_tool("look")]
    )
    await bench.run(said("Go."))
    assert bench.events(AgentToolResult)[0].outcome == "error"
    assert not bench.events(SpanToolStart)


async def test_a_tool_that_hangs_is_answered_at_its_timeout():
    async def hang(_context, _arguments):
        await asyncio.sleep(60)

    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done.")),
        [make_tool("look", hang, timeout=0.01)],
    )
    await bench.run(said("Go."))
    assert "did not finish within" in results(bench)[0]


async def test_a_call_of_a_tool_that_was_not_offered_is_refused():
    """Naming a hidden tool does not make it run."""
    ran: list[str] = []
    tool = make_tool("secret", noting(ran))
    bench = Bench(
        scripted(reply(call("secret", text="a"), call("none", text="b")), reply("Done.")),
        [tool],
        rules=(ToolRule(tool="look"),),
    )
    await bench.run(said("Go."))
    assert bench.requests[0].tools == ()
    assert not ran
    assert [event.outcome for event in bench.events(AgentToolResult)] == ["denied", "denied"]
    assert texts(bench) == ["Done."]


async def test_plan_mode_neither_offers_nor_runs_what_writes():
    """Hiding the tools would not be enough."""
    ran: list[str] = []
    bench = Bench(
        scripted(reply(call("write", text="a"), call("look", text="b")), reply("Done.")),
        [
            make_tool("write", noting(ran), effect=Effect.WORKSPACE),
            make_tool("look"),
        ],
        features=Features(plan_mode=True),
    )
    await bench.run(said("Go."))
    assert [tool.name for tool in bench.requests[0].tools] == ["look"]
    assert not ran
    assert "plan mode" in results(bench)[0]


async def test_deny_wins_over_allow():
    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done.")),
        [make_tool("look")],
        rules=(ToolRule(tool="*"), ToolRule(tool="lo*", permission="always_deny")),
    )
    await bench.run(said("Go."))
    assert bench.requests[0].tools == ()
    assert bench.events(AgentToolResult)[0].outcome == "denied"


async def test_that_a_tool_is_about_to_run_is_stored_before_it_runs():
    seen = []

    def look(_context, _arguments):
        seen.append(bench.journal.types[-1])
        return "ok"

    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done.")), [make_tool("look", look)]
    )
    await bench.run(said("Go."))
    assert seen == ["span.tool_start"]


# --- asking ---------------------------------------------------------------------------------------

ASKS = (ToolRule(tool="*"), ToolRule(tool="write", permission="always_ask"))


async def asked(*, runs: list[str]) -> tuple[Bench, str]:
    bench = Bench(
        scripted(
            reply(call("look", text="a"), call("write", text="x")),
            reply("Done."),
            reply("More."),
        ),
        [
            make_tool("look"),
            make_tool(
                "write",
                noting(runs),
                effect=Effect.WORKSPACE,
            ),
        ],
        rules=ASKS,
    )
    await bench.run(said("Go."))
    return bench, bench.entries(AgentToolUse)[1].uid


async def test_a_call_that_asks_rests_the_run_and_the_others_of_its_step_run():
    runs: list[str] = []
    bench, call_id = await asked(runs=runs)
    assert results(bench) == ["look: a"]
    assert runs == []
    assert idles(bench)[-1].stop_reason == RequiresAction(event_ids=(call_id,))
    await bench.run()
    assert len(idles(bench)) == 1, "another wake changes nothing"


async def test_an_allowed_call_runs_once_and_the_turn_goes_on():
    runs: list[str] = []
    bench, call_id = await asked(runs=runs)
    await bench.run(UserToolConfirmation(tool_use_id=call_id, result="allow"))
    assert runs == ["x"]
    assert texts(bench) == ["Done."]
    await bench.run(UserToolConfirmation(tool_use_id=call_id, result="allow"))
    assert runs == ["x"]
    assert len(bench.requests) == 2


async def test_a_denied_call_never_runs_and_the_model_reads_why():
    runs: list[str] = []
    bench, call_id = await asked(runs=runs)
    await bench.run(
        UserToolConfirmation(tool_use_id=call_id, result="deny", deny_message="Not there.")
    )
    assert runs == []
    assert "Not there." in results(bench)[-1]
    assert bench.events(AgentToolResult)[-1].outcome == "denied"
    assert texts(bench) == ["Done."]


async def test_only_the_first_answer_to_a_call_counts():
    runs: list[str] = []
    bench, call_id = await asked(runs=runs)
    await bench.run(
        UserToolConfirmation(tool_use_id=call_id, result="deny"),
        UserToolConfirmation(tool_use_id=call_id, result="allow"),
    )
    assert runs == []


async def test_a_message_posted_while_a_call_waits_is_kept_until_it_is_decided():
    runs: list[str] = []
    bench, call_id = await asked(runs=runs)
    await bench.run(said("And more."))
    assert len(bench.requests) == 1
    await bench.run(UserToolConfirmation(tool_use_id=call_id, result="allow"))
    assert texts(bench) == ["Done.", "More."]


# --- stop, queue, steer ---------------------------------------------------------------------------


async def test_an_interrupt_ends_a_streaming_answer_with_exactly_one_terminal_event():
    hold = Hold()
    bench = Bench(scripted(reply(say("So far", hold, " and on."))))
    running = bench.start(said("Go."))
    await hold.reached.wait()
    bench.journal.post(UserInterrupt())
    bench.signal.interrupt()
    await asyncio.wait_for(running, PATIENCE)
    (message,) = bench.events(AgentMessage)
    assert text_of(message.content) == "So far"
    assert message.interrupted
    (idle,) = idles(bench)
    assert idle.stop_reason == EndTurn()
    assert idle.interrupted
    assert bench.events(SpanModelRequestEnd)[0].end == "interrupted"
    assert bench.provider.closed_early == 1
    assert not bench.live.open


async def test_an_interrupt_answers_running_calls_as_stopped():
    began = asyncio.Event()

    async def hang(_context, _arguments):
        began.set()
        await asyncio.sleep(60)

    bench = Bench(scripted(reply(call("look", text="a"))), [make_tool("look", hang)])
    running = bench.start(said("Go."))
    await asyncio.wait_for(began.wait(), PATIENCE)
    bench.journal.post(UserInterrupt())
    bench.signal.interrupt()
    await asyncio.wait_for(running, PATIENCE)
    (result,) = bench.events(AgentToolResult)
    assert result.outcome == "stopped"
    assert len(idles(bench)) == 1


async def test_an_interrupt_while_a_person_is_asked_answers_the_call_as_stopped():
    runs: list[str] = []
    bench, _call_id = await asked(runs=runs)
    await bench.run(UserInterrupt())
    assert runs == []
    assert bench.events(AgentToolResult)[-1].outcome == "stopped"
    assert idles(bench)[-1].interrupted
    assert len(bench.requests) == 1


async def test_an_interrupt_of_a_resting_conversation_does_nothing():
    bench = Bench(scripted(reply("Done."), reply("More.")))
    await bench.run(said("Go."))
    await bench.run(UserInterrupt())
    assert len(idles(bench)) == 1
    await bench.run(said("Again."))
    assert texts(bench) == ["Done.", "More."]


async def test_a_message_that_was_interrupted_before_its_turn_is_not_answered():
    bench = Bench(scripted(reply("Never said.")))
    await bench.run(said("Go."), UserInterrupt())
    assert bench.requests == []
    assert len(bench.events(InputTaken)) == 1
    assert idles(bench)[-1].interrupted


async def test_messages_posted_while_running_wait_and_are_answered_one_by_one():
    """None is lost."""
    hold = Hold()
    bench = Bench(scripted(reply(say("One", hold)), reply("Two"), reply("Three")))
    running = bench.start(said("1"))
    await hold.reached.wait()
    bench.journal.post(said("2"), said("3"))
    hold.release.set()
    await asyncio.wait_for(running, PATIENCE)
    assert texts(bench) == ["One", "Two", "Three"]
    assert [len(event.event_ids) for event in bench.events(InputTaken)] == [1, 1, 1]
    assert len(idles(bench)) == 3
    last = bench.requests[-1].messages
    assert [message.role for message in last] == ["user", "assistant"] * 2 + ["user"]


async def test_a_withdrawn_message_is_never_taken():
    hold = Hold()
    bench = Bench(scripted(reply(say("One", hold))))
    running = bench.start(said("1"))
    await hold.reached.wait()
    (waiting,) = bench.journal.post(said("2"))
    bench.journal.post(MessageWithdrawn(event_id=waiting.uid))
    hold.release.set()
    await asyncio.wait_for(running, PATIENCE)
    assert texts(bench) == ["One"]


async def test_a_message_that_comes_with_an_interrupt_is_taken_before_those_that_wait():
    """The new text becomes the next turn by itself and the history stays valid."""
    hold = Hold()
    bench = Bench(scripted(reply(say("One", hold)), reply("Urgent"), reply("Two")))
    running = bench.start(said("1"))
    await hold.reached.wait()
    bench.journal.post(said("2"), UserInterrupt(), said("now!"))
    bench.signal.interrupt()
    await asyncio.wait_for(running, PATIENCE)
    asked = [
        [part.text for part in request.messages[-1].parts if hasattr(part, "text")][-1]
        for request in bench.requests
    ]
    assert asked == ["1", "now!", "2"]
    assert [idle.interrupted for idle in idles(bench)] == [True, False, False]


# --- crashes --------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


async def test_a_run_killed_at_any_commit_point_finishes_when_it_is_woken_again():
    """Nothing is lost, and no call runs twice unless it only reads."""

    def fresh(runs: list[str]) -> Bench:
        def brain(request):
            answered = sum(
                1
                for message in request.messages
                for part in message.parts
                if hasattr(part, "call_id")
            )
            if answered == 0:
                return reply("Working.", call("look", text="a"), call("write", text="x"))
            return reply("Done.")

        return Bench(
            Scripted(brain),
            [
                make_tool("look"),
                make_tool(
                    "write",
                    noting(runs),
                    effect=Effect.WORKSPACE,
                ),
            ],
        )

    whole: list[str] = []
    undisturbed = fresh(whole)
    await undisturbed.run(said("Go."))
    points = undisturbed.journal.appends
    assert points > 8
    for point in range(1, points + 1):
        for after in (False, True):
            runs: list[str] = []
            bench = fresh(runs)

            def kill(journal, entries, point=point, after=after):
                if journal.appends == point:
                    if after:
                        for entry in entries:
                            journal._store(entry)
                    raise Killed

            bench.journal.hook = kill
            with pytest.raises((Killed, BaseExceptionGroup)):
                await bench.run(said("Go."))
            bench.journal.hook = None
            await bench.run()
            assert len(runs) <= 1, f"repeated at {point}"
            assert [entry.seq for entry in bench.journal.entries] == list(
                range(1, len(bench.journal.entries) + 1)
            )
            assert texts(bench)[-1] == "Done."
            assert isinstance(bench.events()[-1], SessionStatusIdle)
            calls = {entry.uid for entry in bench.entries(AgentToolUse)}
            answered = [event.tool_use_id for event in bench.events(AgentToolResult)]
            assert sorted(answered) == sorted(calls), f"each call has one answer at {point}"


async def test_a_write_that_was_started_and_not_answered_is_reported_as_unknown():
    """Design §4: never run again by itself."""
    runs: list[str] = []
    bench = Bench(
        scripted(reply("I see.")),
        [make_tool("write", noting(runs), effect=Effect.WORKSPACE)],
    )
    message, request = Entry.of(said("Go.")), Entry.of(SpanModelRequestStart())
    use = Entry.of(AgentToolUse(name="write", input={"text": "x"}, model_request_id=request.uid))
    for entry in (
        message,
        Entry.of(InputTaken(event_ids=(message.uid,))),
        request,
        use,
        Entry.of(
            SpanModelRequestEnd(model_request_start_id=request.uid, model_usage={}, end="tool_use")
        ),
        Entry.of(SpanToolStart(tool_use_id=use.uid, effect="workspace")),
    ):
        bench.journal._store(entry)
    await bench.run()
    assert runs == []
    (result,) = bench.events(AgentToolResult)
    assert result.outcome == "unknown"
    assert texts(bench) == ["I see."]


async def test_text_that_a_lost_process_had_received_is_kept_and_the_answer_goes_on():
    bench = Bench(scripted(reply("and the rest.")))
    message, request = Entry.of(said("Go.")), Entry.of(SpanModelRequestStart())
    for entry in (message, Entry.of(InputTaken(event_ids=(message.uid,))), request):
        bench.journal._store(entry)
    partial = (LiveBlock("sevt_partial", "text", request.uid), "Half of it ")
    await bench.run(partials=[partial])
    assert texts(bench) == ["Half of it ", "and the rest."]
    ends = bench.events(SpanModelRequestEnd)
    assert [end.end for end in ends] == ["lost", "end_turn"]


async def test_what_a_lost_process_had_received_is_charged_whole_blocks_as_well():
    bench = Bench(scripted(reply("and the rest.")))
    message, request = Entry.of(said("Go.")), Entry.of(SpanModelRequestStart())
    thought = AgentThinking(thinking="t" * 4_000, model_request_id=request.uid)
    words = AgentMessage(content=(Text(text="w" * 400),), model_request_id=request.uid)
    for entry in (
        message,
        Entry.of(InputTaken(event_ids=(message.uid,))),
        request,
        Entry.of(thought),
        Entry.of(words),
    ):
        bench.journal._store(entry)
    await bench.run(partials=[(LiveBlock("sevt_partial", "text", request.uid), "p" * 40)])
    lost = bench.events(SpanModelRequestEnd)[0]
    assert (lost.end, lost.model_usage.output_tokens) == ("lost", 1_110)


async def test_a_run_that_lost_its_lease_stops_at_once():

    def lose(journal, _entries):
        if journal.appends == 2:
            raise LeaseLost

    bench = Bench(scripted(reply("Never stored.")))
    bench.journal.hook = lose
    with pytest.raises(LeaseLost):
        await bench.run(said("Go."))
    assert texts(bench) == []


# --- streaming ------------------------------------------------------------------------------------


async def test_deltas_join_to_the_stored_text_and_reasoning_comes_first():
    bench = Bench(scripted(reply(think("Hmm, well."), "Hello there.", chunk=2)))
    await bench.run(said("Hi."))
    (thought,) = bench.entries(AgentThinking)
    (message,) = bench.entries(AgentMessage)
    assert bench.live.text_of(thought.uid) == "Hmm, well."
    assert bench.live.text_of(message.uid) == "Hello there."
    assert len(bench.live.deltas) > 5
    assert thought.seq < message.seq
    assert bench.live.deltas[0][0] == thought.uid


async def test_usage_adds_up_over_every_request_of_the_conversation():
    bench = Bench(scripted(reply(call("look", text="a")), reply("Done.")), [make_tool("look")])
    await bench.run(said("Go."))
    usage = next(event for event in bench.events() if event.type == "session.usage")
    assert (usage.input_tokens, usage.output_tokens) == (20, 10)


async def test_a_long_conversation_costs_no_more_per_step_than_a_short_one():
    """The number of appends a step makes does not grow."""
    appends: list[int] = []

    def look(_context, _arguments):
        appends.append(bench.journal.appends)
        return "ok"

    bench = Bench(
        scripted(*(reply(call("look", text="a")) for _ in range(40)), reply("Done.")),
        [make_tool("look", look)],
        limits=Limits(steps=60),
    )
    await bench.run(said("Go."))
    steps = {later - earlier for earlier, later in itertools.pairwise(appends)}
    assert len(steps) == 1


# --- trying again ---------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [Overloaded, RateLimited, ProviderTimedOut])
async def test_a_passing_failure_is_put_off_and_tried_again_up_to_three_times(failure):
    """1 + 3 calls, a growing delay, then the turn ends with the true cause."""
    bench = Bench(scripted(*(failure("Busy.") for _ in range(9))))
    await bench.run(said("Go."))
    for _ in range(5):
        await bench.run()
    assert len(bench.requests) == 4
    delays = [event.delay_seconds for event in bench.events(SessionStatusRescheduled)]
    assert len(delays) == 3
    for delay, least in zip(delays, (1, 2, 4), strict=True):
        assert least <= delay <= least * 1.5
    statuses = [event.error.retry_status for event in bench.events(SessionError)]
    assert statuses == ["retrying"] * 3 + ["exhausted"]
    assert [event.error.attempts for event in bench.events(SessionError)] == [1, 2, 3, 4]
    assert [idle.stop_reason for idle in idles(bench)] == [RetriesExhausted()]


async def test_a_run_that_put_its_request_off_does_not_spin():
    bench = Bench(scripted(Overloaded("Busy."), reply("Done.")))
    await bench.run(said("Go."))
    assert len(bench.requests) == 1
    await bench.run()
    assert texts(bench) == ["Done."]


async def test_what_the_service_asks_us_to_wait_is_waited():
    """Retry-After is honoured."""
    bench = Bench(scripted(RateLimited("Slowly.", retry_after=42.0), reply("Done.")))
    await bench.run(said("Go."))
    assert bench.events(SessionStatusRescheduled)[0].delay_seconds == 42.0


@given(st.integers(0, 40), st.floats(0, 1e6) | st.none(), st.floats(0, 1))
def test_a_delay_grows_to_a_bound_and_never_undercuts_the_service(failures, wanted, random):
    delay = retry_delay(failures, wanted, random)
    assert 1 <= delay <= 600
    assert delay >= min(wanted or 0, 600) - 0.001


async def test_a_success_in_between_gives_the_retries_back():
    bench = Bench(
        scripted(
            Overloaded("Busy."),
            reply(call("look", text="a")),
            *(Overloaded("Busy.") for _ in range(3)),
            reply("Done."),
        ),
        [make_tool("look")],
    )
    await bench.run(said("Go."))
    for _ in range(6):
        await bench.run()
    assert texts(bench) == ["Done."]


# --- steering and waking --------------------------------------------------------------------------


async def test_a_steered_message_joins_the_turn_at_its_next_tool_boundary():
    began, go_on = asyncio.Event(), asyncio.Event()

    async def look(_context, _arguments):
        began.set()
        await go_on.wait()
        return "seen"

    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done."), reply("Later.")),
        [make_tool("look", look)],
    )
    running = bench.start(said("Go."))
    await began.wait()
    steered, _queued = bench.journal.post(said("Mind the gap."), said("And then?"))
    bench.journal.post(MessageSteered(event_id=steered.uid))
    go_on.set()
    await asyncio.wait_for(running, PATIENCE)
    last = bench.requests[1].messages[-1].parts
    assert [getattr(part, "text", None) for part in last] == [None, "Mind the gap."]
    assert texts(bench) == ["Done.", "Later."]
    assert len(idles(bench)) == 2, "the steered one had no turn of its own"


async def test_an_edited_message_says_what_it_was_edited_to():
    hold = Hold()
    bench = Bench(scripted(reply(say("One", hold)), reply("Two")))
    running = bench.start(said("1"))
    await hold.reached.wait()
    (waiting,) = bench.journal.post(said("2"))
    bench.journal.post(MessageEdited(event_id=waiting.uid, content=said("two").content))
    hold.release.set()
    await asyncio.wait_for(running, PATIENCE)
    assert bench.requests[-1].messages[-1].parts[0].text == "two"


async def test_a_due_wake_begins_a_turn_behind_what_people_asked():
    bench = Bench(scripted(reply("For you."), reply("Woken.")))
    await bench.run(
        WakeDue(reason="look again", note="The build.", priority="high"), said("First me.")
    )
    assert texts(bench) == ["For you.", "Woken."]
    woken = bench.requests[-1].messages[-1].parts[0].text
    assert "look again" in woken
    assert "The build." in woken


async def test_the_fourth_wake_in_a_row_is_refused_and_a_person_sets_it_back():
    bench = Bench(Scripted(_goes_on), wakes.TOOLS)
    await bench.run(said("Watch it."))
    for expected in (1, 2, 3):
        assert len(bench.events(WakeRequested)) == expected
        await bench.run(WakeDue(reason="r"))
    assert len(bench.events(WakeRequested)) == 3
    assert "Sleep now" in results(bench)[-1]
    await bench.run(said("Go on."))
    assert len(bench.events(WakeRequested)) == 4


def _goes_on(request):
    """Asks to be woken once in each turn, whatever it is told."""
    last = request.messages[-1].parts[-1]
    if hasattr(last, "call_id"):
        return reply("Resting.")
    return reply(call("continue_later", seconds=5, reason="r"))


# --- effects outside ------------------------------------------------------------------------------


def crashed_in(effect: Effect, runs: list[str], **more) -> Bench:
    """A log whose process died while the call of a tool with this effect was under way."""
    bench = Bench(
        Scripted(lambda _request: "I see."),
        [make_tool("send", noting_ids(runs), effect=effect)],
        **more,
    )
    message, request = Entry.of(said("Go.")), Entry.of(SpanModelRequestStart())
    use = Entry.of(AgentToolUse(name="send", input={"text": "x"}, model_request_id=request.uid))
    end = SpanModelRequestEnd(model_request_start_id=request.uid, model_usage={}, end="tool_use")
    for entry in (
        message,
        Entry.of(SessionStatusRunning()),
        Entry.of(InputTaken(event_ids=(message.uid,))),
        request,
        use,
        Entry.of(end),
        Entry.of(UserToolConfirmation(tool_use_id=use.uid, result="allow")),
        Entry.of(SpanToolStart(tool_use_id=use.uid, effect=effect.value)),
    ):
        bench.journal._store(entry)
    return bench


async def test_a_read_that_was_under_way_is_simply_done_again():
    runs: list[str] = []
    bench = crashed_in(Effect.READ, runs)
    await bench.run()
    assert len(runs) == 1
    assert texts(bench) == ["I see."]


async def test_an_outside_effect_that_was_under_way_asks_a_person_before_anything_else():
    """The approval of the first attempt does not allow a second one."""
    runs: list[str] = []
    bench = crashed_in(Effect.OUTSIDE, runs)
    await bench.run()
    await bench.run()
    assert runs == []
    assert isinstance(idles(bench)[-1].stop_reason, RequiresAction)
    assert len(bench.events(OutcomeUnknown)) == 1


@pytest.mark.parametrize("result", ["allow", "deny"])
async def test_a_person_says_what_becomes_of_an_unknown_outcome(result: str):
    runs: list[str] = []
    bench = crashed_in(Effect.OUTSIDE, runs)
    await bench.run()
    (use,) = bench.entries(AgentToolUse)
    await bench.run(UserToolConfirmation(tool_use_id=use.uid, result=result))
    assert runs == ([use.uid] if result == "allow" else []), "under the same effect id"
    assert bench.events(AgentToolResult)[-1].outcome == ("ok" if result == "allow" else "unknown")
    assert texts(bench) == ["I see."]


# --- an interrupt at any moment -------------------------------------------------------------------


@pytest.mark.parametrize("asks", [False, True])
async def test_an_interrupt_that_comes_at_any_append_ends_the_turn_and_leaves_nothing_open(
    asks: bool,
):
    """Also right before a rest that waits for a person, and right before a retry."""
    rules = (ToolRule(tool="*", permission="always_ask" if asks else "always_allow"),)
    script = [
        reply("Looking.", call("look", text="a")),
        Overloaded("Busy."),
        *["Late."] * 9,
    ]
    for point in range(1, 30):
        bench = Bench(scripted(*script), [make_tool("look")], rules=rules)

        def interrupt(journal, _entries, point=point):
            if journal.appends == point:
                journal.post(UserInterrupt())

        bench.journal.hook = interrupt
        await bench.run(said("Go."))
        if bench.journal.appends < point:
            break
        await bench.run()
        stopped = [idle for idle in idles(bench) if idle.interrupted]
        ended_by_itself = isinstance(idles(bench)[-1].stop_reason, EndTurn)
        assert stopped or ended_by_itself, f"at append {point}: {bench.journal.types}"
        answered = {event.tool_use_id for event in bench.events(AgentToolResult)}
        assert answered == {entry.uid for entry in bench.entries(AgentToolUse)}, point
        count = len(bench.requests)
        await bench.run()
        assert len(bench.requests) == count, f"at append {point} it goes on after the stop"
    assert point > 4


@pytest.mark.parametrize("given", [None, 7, b"bytes"])
async def test_a_tool_that_returns_what_no_tool_may_is_answered_with_an_error(given: object):
    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done.")),
        [make_tool("look", lambda *_: given)],
    )
    await bench.run(said("Go."))
    assert bench.events(AgentToolResult)[0].is_error
    assert texts(bench) == ["Done."]


async def test_a_stopped_reply_is_charged_with_an_estimate_where_the_service_does_not_say():
    """Stopping is no way around a budget."""
    hold = Hold()
    bench = Bench(scripted(reply(say("So far", hold))))
    running = bench.start(said("word " * 4_000))
    await hold.reached.wait()
    bench.journal.post(UserInterrupt())
    bench.signal.interrupt()
    await asyncio.wait_for(running, PATIENCE)
    (end,) = bench.events(SpanModelRequestEnd)
    assert end.estimated
    assert 4_000 <= end.model_usage.input_tokens <= 10_000


async def test_a_request_that_the_service_refused_costs_neither_tokens_nor_a_step():
    bench = Bench(
        scripted(
            Overloaded("Busy."), reply(call("look", text="a")), Overloaded("Busy."), reply("Done.")
        ),
        [make_tool("look")],
        limits=Limits(steps=2),
    )
    await bench.run(said("Go."))
    for _ in range(3):
        await bench.run()
    assert [request.tool_choice for request in bench.requests] == ["auto"] * 4
    assert bench.events(SpanModelRequestEnd)[0].model_usage.input_tokens == 0


def test_a_nul_character_is_stored_as_the_replacement_character():
    """One of the databases cannot hold it."""
    event = AgentToolUse(name="write", input={"a\0": ["b\0", {"c": "d\0"}]})
    assert dump(event)["input"] == {"a\ufffd": ["b\ufffd", {"c": "d\ufffd"}]}
