"""Hooks in the loop, without tables: killed at any moment it asks again, and nothing they say loosens."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agentconfig import ToolRule
from harness.content import text_of
from harness.errors import ProviderError
from harness.events import (
    AgentToolResult,
    ApprovalRequested,
    CompactionRequested,
    CompactionSkipped,
    ContentSetAside,
    MessageSteered,
    RetryRequested,
    SessionStatusIdle,
    SpanModelRequestStart,
    SpanOutcomeEvaluationEnd,
    SpanToolStart,
    UserDefineOutcome,
    UserInterrupt,
    UserToolConfirmation,
    know,
)
from harness.grading import record_of
from harness.history import Entry, History
from harness.hooks import About, Ruling
from harness.tools import Effect, Tool
from hooks.asking import Held, ask
from hooks.events import HookAnswer, HooksAnswered
from hooks.installed import Answer, Where
from hooks.points import ASKED, POINTS
from hooks.requests import before_request
from providers.scripted import Fail, Scripted, call, reply
from tests.harness.bench import Bench, make_tool, noting, said, scripted
from tests.harness.test_outcomes import CHECKED, checking, judged
from tests.patience import PATIENCE
from tests.properties import examples

know(HooksAnswered)

WHERE = Where("sesn_1", "org_1", "agent_1")


@dataclass
class Port:
    """The hooks of a run, asked as in a run of the server, and counted nowhere."""

    hooks: Sequence[Held]
    asked: list[About] = field(default_factory=list)

    @property
    def points(self) -> frozenset[str]:
        return frozenset(point for hook in self.hooks for point in hook.points) & ASKED

    def sees(self, tool: str) -> bool:
        return any(each.sees(tool) for each in self.hooks)

    def before_request(self, history: History) -> Sequence[About]:
        return [*before_request(history, self.points)]

    async def ask(self, about: About, extras: Mapping[str, Any]) -> Ruling:
        self.asked.append(about)
        ruling, _told = await ask(self.hooks, about, WHERE, extras)
        return ruling

    async def ended(self) -> None:
        pass


def hook(
    function: Callable[..., Any],
    *points: str,
    name: str = "gate",
    trusted: bool = True,
    **more: Any,
) -> Held:
    return Held(
        pk=1,
        name=name,
        kind="python",
        target=name,
        sealed="",
        tool=more.pop("tool", "*"),
        deadline=more.pop("deadline", 5.0),
        refuses_on_failure=more.pop("refuses", True),
        points=frozenset(points),
        trusted=trusted,
        load=lambda _target: function,
    )


def says(answer: Any) -> Callable[..., Any]:
    async def function(_about: About, _where: Where) -> Any:
        return answer

    return function


def prompts(bench: Bench) -> list[str]:
    return [str(request.messages) for request in bench.requests]


def told(bench: Bench, point: str) -> list[HooksAnswered]:
    return [event for event in bench.events(HooksAnswered) if event.point == point]


async def test_a_yes_to_what_a_hook_asks_about_counts_at_the_machine_it_was_asked_for_alone():
    sent: list[str] = []

    def send(host: str) -> Tool:
        return make_tool("send", noting(sent), effect=Effect.OUTSIDE, host=host)

    for moves in (False, True):
        asking = Port([hook(says(Answer("ask", "Look first.")), "tool.before")])
        provider = scripted(reply(call("send", text="x")), reply("Done."))
        bench = Bench(provider, [send("here.example")], hooks=asking)
        await bench.run(said("Send it."))
        (asked,) = bench.entries(ApprovalRequested)
        assert asked.event.terms.host == "here.example"
        if moves:
            bench.tools = [send("there.example")]
        yes = UserToolConfirmation(tool_use_id=asked.event.tool_use_id, result="allow")
        await bench.run(yes)
        assert sent == ["x"]
        if moves:
            anew = bench.events(ApprovalRequested)[1]
            assert (anew.tool_use_id, anew.terms.host) == (yes.tool_use_id, "there.example")
            assert "there.example" in anew.reason
            await bench.run(yes)
            assert sent == ["x", "x"]


@pytest.mark.parametrize("verdict", ["refuse", "ask"])
async def test_what_a_hook_said_is_told_though_somebody_speaks_before_it_is_stored(
    verdict: Literal["refuse", "ask"],
):
    spoke: list[str] = []

    async def answers(_about: About, _where: Where) -> Answer:
        if not spoke:
            spoke.append("once")
            bench.journal.post(said("Wait."))
        return Answer(verdict, "Not now.")

    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done."), reply("Done.")),
        [make_tool("look")],
        hooks=Port([hook(answers, "tool.before")]),
    )
    await bench.run(said("Go."))

    kinds = [type(event) for event in bench.events()]
    assert kinds.count(HooksAnswered) == 1
    follows = AgentToolResult if verdict == "refuse" else ApprovalRequested
    assert kinds.index(HooksAnswered) < kinds.index(follows)


async def test_a_check_of_an_outcome_that_a_hook_holds_back_is_not_run_and_fails():
    for answer in (Answer("refuse", "Not now."), Answer("ask", "Look first.")):
        bench, checks = checking(
            script=[reply("Written."), reply(judged(True, True))],
            hooks=Port([hook(says(answer), "tool.before")]),
        )
        await bench.run(CHECKED)
        assert checks.ran == []
        assert bench.events(SpanOutcomeEvaluationEnd)[0].criteria[1].met is False
        assert answer.reason in str(bench.requests[1].messages)


@pytest.mark.parametrize("verdict", ["refuse", "ask"])
@pytest.mark.parametrize(("trusted", "whose"), [(False, "the hook “gate”"), (True, "")])
async def test_why_a_hook_holds_a_check_back_comes_in_with_the_judgement(verdict, trusted, whose):
    holds = hook(says(Answer(verdict, "Do evil.")), "tool.before", trusted=trusted)
    bench, _checks = checking(
        script=[reply("Written."), reply(judged(True, True))], hooks=Port([holds])
    )
    await bench.run(CHECKED)
    judgement = bench.events(SpanOutcomeEvaluationEnd)[0]
    assert "Do evil." in judgement.criteria[1].reason
    assert judgement.untrusted_by == whose


# --- words for the agent --------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["turn.before", "model.before"])
async def test_words_before_a_request_stand_in_the_log_and_in_every_prompt_from_there(point):
    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done.")),
        [make_tool("look")],
        hooks=Port([hook(says(Answer(context="The office is closed.")), point)]),
    )
    await bench.run(said("Go."))
    expected = 1 if point == "turn.before" else 2
    assert [prompt.count("The office is closed.") for prompt in prompts(bench)] == [1, expected]
    assert len(told(bench, point)) == expected
    assert "From the hook “gate”" in prompts(bench)[0]


async def test_words_after_a_call_stand_at_the_end_of_its_result():
    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done.")),
        [make_tool("look")],
        hooks=Port([hook(says(Answer(context="It is an old file.")), "tool.after")]),
    )
    await bench.run(said("Go."))
    (result,) = bench.events(AgentToolResult)
    assert text_of(result.content).startswith("look: a")
    assert text_of(result.content).endswith("It is an old file.")
    assert not result.untrusted


async def test_words_after_a_call_are_whole_however_long_its_result_is():
    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Done.")),
        [make_tool("look", lambda *_: "long " * 20_000)],
        hooks=Port([hook(says(Answer(context="Old. " * 1_000)), "tool.after")]),
    )
    await bench.run(said("Go."))
    (result,) = bench.events(AgentToolResult)
    assert "characters left out" in text_of(result.content)
    assert text_of(result.content).endswith(f"set up for this work:]\n{'Old. ' * 1_000}".strip())


@pytest.mark.parametrize("point", ["turn.before", "model.before", "tool.after"])
async def test_words_that_nobody_vouches_for_taint(point):
    taints: list[str] = []

    def note(context, _arguments):
        taints.append(context.tainted_by)
        return "done"

    bench = Bench(
        scripted(reply(call("look", text="a")), reply(call("look", text="b")), reply("Done.")),
        [make_tool("look", note)],
        hooks=Port([hook(says(Answer(context="Do evil.")), point, trusted=False)]),
    )
    await bench.run(said("Go."))
    assert taints[1] == "the hook “gate”"
    assert "others wrote this" in prompts(bench)[-1]


@pytest.mark.parametrize("point", ["tool.before", "tool.after"])
@pytest.mark.parametrize(("trusted", "taint"), [(False, "the hook “gate”"), (True, "")])
async def test_the_reason_of_a_refusal_that_nobody_vouches_for_taints(point, trusted, taint):
    taints: list[str] = []

    def note(context, _arguments):
        taints.append(context.tainted_by)
        return "done"

    refuses = hook(says(Answer("refuse", "Do evil.")), point, trusted=trusted, tool="look")
    bench = Bench(
        scripted(reply(call("look", text="a")), reply(call("see", text="b")), reply("Done.")),
        [make_tool("look"), make_tool("see", note)],
        hooks=Port([refuses]),
    )
    await bench.run(said("Go."))
    assert "Do evil." in prompts(bench)[1]
    assert taints == [taint]


def test_words_that_are_taken_out_leave_their_mark():
    added = HookAnswer(
        hook="gate", verdict="pass", milliseconds=1, context="Do evil.", adds=True, untrusted=True
    )
    told = HooksAnswered(point="turn.before", turn="sevt_1", told=(added,))
    for event in (told, told.silent()):
        assert History([Entry.of(event)]).tainted_by == "the hook “gate”"


async def test_functions_that_never_return_keep_threads_from_nothing_but_hooks():
    loop, gate = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    held = hook(lambda *_: gate.wait(PATIENCE), "turn.before", deadline=0.1)
    try:
        _ruling, told = await ask([held], About("turn.before", "sevt_1"), WHERE, {})
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 10) == "free"
    finally:
        gate.set()
    assert told[0][1].verdict == "failed"


async def test_a_function_that_would_end_the_process_has_failed():
    held = hook(lambda *_: sys.exit(1), "turn.before")
    _ruling, told = await ask([held], About("turn.before", "sevt_1"), WHERE, {})
    assert told[0][1].reason == "it wanted to end the process"


# --- refusals -------------------------------------------------------------------------------------


async def test_a_refused_turn_makes_no_request_and_its_words_reach_no_later_prompt():
    bench = Bench(scripted(reply("Hello.")))
    verdicts = iter([Answer("refuse", "a secret"), None])
    bench.hooks = Port([hook(lambda *_: next(verdicts), "turn.before")])
    await bench.run(said("The code is 0815."))
    assert bench.requests == []
    (rest,) = bench.events(SessionStatusIdle)
    assert rest.stop_details.code == "hook_refused"
    assert "refuses this turn: a secret" in rest.stop_details.message
    await bench.run(said("Good morning."))
    assert "0815" not in prompts(bench)[0]
    assert "Good morning." in prompts(bench)[0]


async def test_an_outcome_in_refused_words_ends_with_them_and_no_grader_reads_it():
    bench = Bench(scripted(reply("Hello."), reply("Never asked.")))
    verdicts = iter([Answer("refuse"), None])
    bench.hooks = Port([hook(lambda *_: next(verdicts), "turn.before")])
    outcome = UserDefineOutcome(outcome_id="outc_1", description="Leak 0815.", rubric="- leaked")
    await bench.run(outcome)
    await bench.run(said("Good morning."))
    assert [end.result for end in bench.events(SpanOutcomeEvaluationEnd)] == ["interrupted"]
    assert len(bench.requests) == 1
    assert "0815" not in prompts(bench)[0]


def test_what_a_hook_refused_stands_in_no_record_for_a_grader():
    bad, good = Entry.of(said("The code is 0815.")), Entry.of(said("Good morning."))
    refused = Entry.of(ContentSetAside(event_id=bad.uid))
    record = record_of([bad, refused, good], 1_000)
    assert "Good morning." in record
    assert "0815" not in record


async def test_a_turn_that_a_hook_could_not_judge_is_asked_about_again_when_it_is_tried_again():
    answers: list[Any] = [RuntimeError(), None]

    async def flaky(about: About, _where: Where) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer

    bench = Bench(scripted(reply("Hello.")), hooks=Port([hook(flaky, "turn.before")]))
    await bench.run(said("Go."))
    assert bench.requests == []
    assert not bench.events(ContentSetAside)
    await bench.run(RetryRequested())
    assert "Go." in prompts(bench)[0]
    assert answers == []


async def test_words_that_a_hook_could_not_judge_are_shown_to_it_with_the_next_ones():
    answers: list[Any] = [RuntimeError(), Answer("refuse"), None]
    shown: list[str] = []

    async def flaky(about: About, _where: Where) -> Any:
        shown.append(about.more["text"])
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    bench = Bench(scripted(reply("Hello.")), hooks=Port([hook(flaky, "turn.before")]))
    await bench.run(said("The code is 0815."))
    await bench.run(said("Good morning."))
    await bench.run(said("Good evening."))
    assert shown[1:] == ["The code is 0815.\n\nGood morning.", "Good evening."]
    assert "0815" not in prompts(bench)[0]


async def test_words_that_joined_a_turn_that_failed_later_are_not_judged_twice():
    shown: list[str] = []

    async def watch(about: About, _where: Where) -> Any:
        shown.append(about.more["text"])

    failing = [Fail(ProviderError("It is broken.")), reply("Hello.")]
    bench = Bench(scripted(*failing), hooks=Port([hook(watch, "turn.before")]))
    await bench.run(said("One."))
    await bench.run(said("Two."))
    assert shown == ["One.", "Two."]


async def test_words_that_join_a_turn_are_shown_as_those_that_begin_one():
    bench = Bench(scripted(reply(call("look", text="a")), reply("Never asked.")))

    def steer(_context, _arguments):
        (posted,) = bench.journal.post(said("And the secret."))
        bench.journal.post(MessageSteered(event_id=posted.uid))
        return "looked"

    async def judge(about: About, _where: Where) -> Any:
        return Answer("refuse") if "secret" in about.more["text"] else None

    bench.tools = [make_tool("look", steer)]
    port = bench.hooks = Port([hook(judge, "turn.before")])
    await bench.run(said("Go."))
    assert [about.more["steered"] for about in port.asked] == [False, True]
    assert len(bench.requests) == 1


async def test_a_withheld_result_is_nowhere():
    bench = Bench(
        scripted(reply(call("look", text="the secret")), reply("I see.")),
        [make_tool("look")],
        hooks=Port([hook(says(Answer("refuse", "not for you")), "tool.after", tool="lo*")]),
    )
    await bench.run(said("Go."))
    (result,) = bench.events(AgentToolResult)
    assert "withholds this result: not for you" in text_of(result.content)
    assert result.is_error
    assert all("look: the secret" not in event.model_dump_json() for event in bench.events())


async def test_a_summary_that_a_hook_puts_off_takes_nothing_from_the_dialogue():
    bench = Bench(scripted(*(reply(f"{n}.") for n in range(4))))
    port = bench.hooks = Port([hook(says(Answer("refuse", "not now")), "compaction.before")])
    for n in range(4):
        await bench.run(said(f"Say {n}."))
    await bench.run(CompactionRequested(focus="prices"))
    (skipped,) = bench.events(CompactionSkipped)
    assert "refuses a summary now: not now" in skipped.detail
    assert len(bench.requests) == 4
    assert port.asked[0].more["focus"] == "prices"


@pytest.mark.parametrize("point", ["model.before", "tool.before"])
async def test_a_persons_stop_does_not_wait_for_a_hook(point):
    asked = asyncio.Event()

    async def hang(_about: About, _where: Where) -> None:
        asked.set()
        await asyncio.sleep(2 * PATIENCE)

    ran: list[str] = []
    bench = Bench(
        scripted(reply(call("look", text="a")), reply("Never.")),
        [make_tool("look", noting(ran))],
        hooks=Port([hook(hang, point, deadline=3 * PATIENCE)]),
    )
    running = bench.start(said("Go."))
    await asyncio.wait_for(asked.wait(), PATIENCE)
    bench.journal.post(UserInterrupt())
    bench.signal.interrupt()
    await asyncio.wait_for(running, PATIENCE)
    assert len(bench.requests) == (point == "tool.before")
    assert ran == []
    assert bench.events(SessionStatusIdle)[-1].interrupted


@pytest.mark.parametrize("point", sorted(ASKED))
def test_only_hooks_about_calls_keep_servers_from_being_called_elsewhere(point):
    class Elsewhere(Scripted):
        runs_mcp = True

    bench = Bench(Elsewhere([]), hooks=Port([hook(says(None), point)]))
    assert bool(bench.kit.remote_refusal) is (point in {"tool.before", "tool.after"})


@pytest.mark.parametrize(
    ("point", "tool", "told"),
    [
        ("tool.before", "write_memory", "write_memory"),
        ("tool.after", "*", "write_memory"),
        ("tool.before", "bash", "memory"),
        ("turn.before", "*", "memory"),
    ],
)
def test_a_tool_whose_calls_hooks_see_is_not_done_by_another_one_that_models_were_trained_on(
    point, tool, told
):
    class Trained(Scripted):
        features = frozenset({"memory_20250818"})

    memory = make_tool("memory", trained="memory_20250818", stands_for=("write_memory",))
    bench = Bench(
        Trained([]),
        [memory, make_tool("write_memory")],
        hooks=Port([hook(says(None), point, tool=tool)]),
        model="claude-sonnet-5-5",
    )
    assert [each.name for each in bench.kit.offered(History([]))] == [told]


# --- crashes --------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process ends here."""


async def test_a_run_killed_at_any_commit_has_each_hooks_words_once_and_ends_as_undisturbed():
    def fresh(runs: list[str]) -> Bench:
        def brain(request):
            answered = "write" in str(request.messages)
            return reply("Done.") if answered else reply(call("write", text="x"))

        everywhere = hook(says(Answer(context="Mind it.")), "turn.before", "model.before")
        after = hook(says(Answer(context="Written.")), "tool.after", name="after")
        gate = hook(says(None), "tool.before", name="before")
        return Bench(
            Scripted(brain),
            [make_tool("write", noting(runs), effect=Effect.WORKSPACE)],
            hooks=Port([everywhere, after, gate]),
        )

    whole = fresh([])
    await whole.run(said("Go."))
    words = prompts(whole)[-1].count("Mind it.")
    assert words == 3
    for point in range(1, whole.journal.appends + 1):
        for stored in (False, True):
            runs: list[str] = []
            bench = fresh(runs)

            def kill(journal, entries, point=point, stored=stored):
                if journal.appends == point:
                    for entry in entries if stored else ():
                        journal._store(entry)
                    raise Killed

            bench.journal.hook = kill
            with pytest.raises((Killed, BaseExceptionGroup)):
                await bench.run(said("Go."))
            bench.journal.hook = None
            await bench.run()
            assert len(runs) <= 1, f"repeated at {point}"
            assert isinstance(bench.events()[-1], SessionStatusIdle)
            assert len(told(bench, "turn.before")) == 1, f"at {point}"
            steps = len({event.step for event in bench.events(SpanModelRequestStart)})
            assert len(told(bench, "model.before")) <= steps, f"at {point}"


# --- nothing loosens ------------------------------------------------------------------------------

ANYTHING = st.one_of(
    st.none(),
    st.builds(
        Answer,
        st.sampled_from(["pass", "ask", "refuse", "allow", "", "PASS"]),
        st.text(max_size=5),
        st.text(max_size=5),
    ),
    st.sampled_from([1, "pass", RuntimeError()]),
)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(POINTS)), ANYTHING, st.booleans()), max_size=6),
    st.sampled_from(["always_deny", "always_ask"]),
)
def test_no_answers_of_hooks_make_a_call_run_that_the_policy_holds_back(answers, permission):
    async def play() -> None:
        runs: list[str] = []
        held = [
            hook(_raising(answer), point, name=f"h{n}", refuses=refuses)
            for n, (point, answer, refuses) in enumerate(answers)
        ]
        bench = Bench(
            Scripted(
                lambda r: (
                    reply("No.") if "write" in str(r.messages) else reply(call("write", text="x"))
                )
            ),
            [make_tool("write", noting(runs), effect=Effect.WORKSPACE)],
            rules=(ToolRule(tool="*"), ToolRule(tool="write", permission=permission)),
            hooks=Port(held),
        )
        await bench.run(said("Go."))
        assert runs == []
        assert not bench.events(SpanToolStart)
        asks = any(point == "tool.before" for point, _answer, _refuses in answers)
        assert not (asks and bench.events(ApprovalRequested))

    asyncio.run(play())


def _raising(answer: Any) -> Callable[..., Any]:
    async def function(_about: About, _where: Where) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return function
