"""Calls that a call makes: in the log like any other, asked about, begun anew without being made again."""

from __future__ import annotations

from typing import Any

import pytest

from harness.agentconfig import ToolRule
from harness.content import text_of
from harness.errors import ToolError
from harness.events import (
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    OutcomeUnknown,
    RequiresAction,
    SessionStatusIdle,
    SpanToolStart,
    UserInterrupt,
    UserToolConfirmation,
)
from harness.history import History
from harness.messages import ToolAnswer, ToolCall
from harness.nested import DEPTH, MOST
from harness.texts import Texts
from harness.tools import Effect, ToolContext
from harness.transcript import build_messages
from providers.scripted import call, reply
from tests.harness.bench import Bench, make_tool, noting, said, scripted

ASKS = (ToolRule(tool="*"), ToolRule(tool="send", permission="always_ask"))


def composed(name: str, *steps: tuple[str, str], **more: Any) -> Any:
    """A tool that calls these tools with these texts, and answers what they answered."""

    async def handler(context: ToolContext, _arguments: dict[str, Any]) -> str:
        heard = []
        for tool, text in steps:
            answer = await context.call_tool(tool, {"text": text})
            words = text_of(answer.content)
            heard.append(f"{answer.outcome}: {words}" if answer.is_error else words)
        return " | ".join(heard)

    return make_tool(name, handler, composed=True, **more)


def bench_of(
    *tools: Any, rules: tuple[ToolRule, ...] = (ToolRule(tool="*"),), **more: Any
) -> Bench:
    return Bench(
        scripted(reply(call("report", text="go")), reply("Done.")), tools=tools, rules=rules, **more
    )


def result(bench: Bench, tool: str = "report") -> str:
    names = {entry.uid: entry.event.name for entry in bench.entries(AgentToolUse)}
    found = [e for e in bench.events(AgentToolResult) if names[e.tool_use_id] == tool]
    assert len(found) == 1, "answered once"
    return text_of(found[0].content)


def waits_for(bench: Bench) -> tuple[str, ...]:
    rest = bench.events(SessionStatusIdle)[-1].stop_reason
    assert isinstance(rest, RequiresAction)
    return rest.event_ids


def use_of(bench: Bench, tool: str) -> Any:
    return next(each for each in bench.entries(AgentToolUse) if each.event.name == tool)


async def test_what_a_call_calls_stands_in_the_log_and_not_in_the_dialogue():
    sent: list[str] = []
    send = make_tool("send", noting(sent), effect=Effect.OUTSIDE)
    bench = bench_of(composed("report", ("look", "a"), ("send", "b")), make_tool("look"), send)
    await bench.run(said("Go"))

    assert (sent, result(bench)) == (["b"], "look: a | done")
    outer = use_of(bench, "report")
    inner = use_of(bench, "send").event
    assert (inner.within, inner.within_tool, inner.depth) == (outer.uid, "report", 1)
    assert [e.effect for e in bench.events(SpanToolStart)] == ["read", "read", "outside"]
    parts = [p for message in bench.requests[1].messages for p in message.parts]
    assert [part.name for part in parts if isinstance(part, ToolCall)] == ["report"]
    assert len([part for part in parts if isinstance(part, ToolAnswer)]) == 1
    whole = build_messages(bench.journal.entries, texts=Texts())
    assert whole[: len(bench.requests[1].messages)] == bench.requests[1].messages


async def test_a_nested_call_that_asks_rests_the_run_and_nothing_is_made_again():
    looked: list[str] = []
    sent: list[str] = []
    report = composed("report", ("look", "a"), ("send", "b"), ("look", "c"))
    look = make_tool("look", noting(looked), effect=Effect.WORKSPACE)
    bench = bench_of(report, look, make_tool("send", noting(sent)), rules=ASKS)
    await bench.run(said("Go"))
    asked = use_of(bench, "send")
    assert waits_for(bench) == (asked.uid,)
    assert (looked, sent) == (["a"], [])

    length = len(bench.journal.entries)
    await bench.run()
    assert len(bench.journal.entries) == length, "while it waits another run owes nothing"
    assert not History(bench.journal.entries).has_work

    await bench.run(UserToolConfirmation(tool_use_id=asked.uid, result="allow"))
    assert (looked, sent) == (["a", "c"], ["b"])
    assert result(bench) == "done | done | done"
    assert [text_of(e.content) for e in bench.events(AgentMessage)] == ["Done."]


async def test_a_nested_call_that_a_person_denies_is_told_to_the_one_that_made_it():
    bench = bench_of(
        composed("report", ("send", "b"), ("look", "c")),
        make_tool("look"),
        make_tool("send"),
        rules=ASKS,
    )
    await bench.run(said("Go"))
    no = UserToolConfirmation(
        tool_use_id=use_of(bench, "send").uid, result="deny", deny_message="Not today."
    )
    await bench.run(no)
    assert result(bench).startswith("denied: ")
    assert "Not today." in result(bench)
    assert result(bench).endswith("| look: c")


async def test_a_rule_that_denies_the_tool_holds_inside_as_outside():
    rules = (ToolRule(tool="*"), ToolRule(tool="send", permission="always_deny"))
    sent: list[str] = []
    bench = bench_of(
        composed("report", ("send", "b")), make_tool("send", noting(sent)), rules=rules
    )
    await bench.run(said("Go"))
    assert sent == []
    assert result(bench).startswith("denied: ")


async def test_a_nested_call_that_breaks_its_schema_or_names_no_tool_is_an_error_of_its_own():
    async def wrong(context: ToolContext, _arguments: dict[str, Any]) -> str:
        for tool, given in (("look", {"number": 7}), ("nothing", {"text": "a"})):
            answer = await context.call_tool(tool, given)
            assert answer.is_error
        return "went on"

    bench = bench_of(make_tool("report", wrong, composed=True), make_tool("look"))
    await bench.run(said("Go"))
    assert result(bench) == "went on"


async def test_calls_stand_in_each_other_five_deep_and_a_sixth_is_refused():
    tools = [composed("report", ("level-2", "x"))]
    tools += [composed(f"level-{n}", (f"level-{n + 1}", "x")) for n in range(2, 7)]
    tools.append(make_tool("level-7"))
    bench = bench_of(*tools)
    await bench.run(said("Go"))
    assert "5 deep at most" in result(bench)
    made = [e.event.name for e in bench.entries(AgentToolUse)]
    assert made == ["report", *(f"level-{n}" for n in range(2, 7))]
    started = {event.tool_use_id for event in bench.events(SpanToolStart)}
    assert len(started) == DEPTH
    assert use_of(bench, "level-6").uid not in started


async def test_a_plain_tool_may_be_called_from_the_fifth_level():
    tools = [composed("report", ("level-2", "x"))]
    tools += [composed(f"level-{n}", (f"level-{n + 1}", "x")) for n in range(2, 6)]
    tools.append(make_tool("level-6"))
    bench = bench_of(*tools)
    await bench.run(said("Go"))
    assert result(bench) == "level-6: x"


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (["a", "b"], ["other", "b"], "its call 1 asks for other input for look"),
        (["a", "b"], ["a"], "it ended after 1 calls of its own; before, it had made 2"),
    ],
)
async def test_who_asks_for_something_else_the_second_time_is_stopped(first, second, words):
    looked: list[str] = []
    attempts = iter([first, second])

    async def fickle(context: ToolContext, _arguments: dict[str, Any]) -> str:
        for text in next(attempts):
            tool = "send" if text == "b" else "look"
            await context.call_tool(tool, {"text": text})
        return "done"

    report = make_tool("report", fickle, composed=True)
    bench = bench_of(report, make_tool("look", noting(looked)), make_tool("send"), rules=ASKS)
    await bench.run(said("Go"))
    await bench.run(UserToolConfirmation(tool_use_id=use_of(bench, "send").uid, result="allow"))
    assert words in result(bench)
    assert looked == ["a"]


async def test_a_call_cannot_make_calls_without_end():
    async def endless(context: ToolContext, _arguments: dict[str, Any]) -> str:
        while True:
            await context.call_tool("look", {"text": "a"})

    bench = bench_of(make_tool("report", endless, composed=True), make_tool("look"))
    await bench.run(said("Go"))
    assert f"at most {MOST} calls" in result(bench)


async def test_a_tool_that_is_not_composed_makes_no_calls():
    async def sly(context: ToolContext, _arguments: dict[str, Any]) -> str:
        await context.call_tool("look", {"text": "a"})
        return "made it"

    bench = bench_of(make_tool("report", sly), make_tool("look"))
    await bench.run(said("Go"))
    assert "makes no calls of its own" in result(bench)


async def test_what_strangers_wrote_marks_the_answer_and_the_calls_behind_it():
    fetch = make_tool("fetch", untrusted=True, effect=Effect.READ)
    send = make_tool("send", effect=Effect.OUTSIDE)
    bench = bench_of(composed("report", ("fetch", "a"), ("send", "b")), fetch, send)
    await bench.run(said("Go"))
    asked = use_of(bench, "send")
    assert waits_for(bench) == (asked.uid,)
    assert "fetch" in asked.event.reason
    await bench.run(UserToolConfirmation(tool_use_id=asked.uid, result="allow"))
    outer = use_of(bench, "report").uid
    (told,) = [e for e in bench.events(AgentToolResult) if e.tool_use_id == outer]
    assert (told.untrusted, told.untrusted_by) == (True, "fetch")


async def test_so_does_what_strangers_wrote_before_it_was_asked_for():
    """Its own words go into what it answers, as those of a command."""
    tools = [make_tool("fetch", untrusted=True), composed("report", ("look", "a"))]
    bench = Bench(
        scripted(reply(call("fetch", text="x")), reply(call("report", text="go")), reply("Done.")),
        tools=[*tools, make_tool("look")],
        rules=(ToolRule(tool="*"),),
    )
    await bench.run(said("Go"))
    outer = use_of(bench, "report").uid
    (told,) = [e for e in bench.events(AgentToolResult) if e.tool_use_id == outer]
    assert (told.untrusted, told.untrusted_by) == (True, "fetch, when this was asked for")


async def test_an_interrupt_answers_the_call_and_what_it_called():
    bench = bench_of(composed("report", ("send", "b")), make_tool("send"), rules=ASKS)
    await bench.run(said("Go"))
    await bench.run(UserInterrupt())
    assert [e.outcome for e in bench.events(AgentToolResult)] == ["stopped", "stopped"]
    assert not History(bench.journal.entries).unanswered()


async def test_a_call_that_is_late_leaves_nothing_open():
    async def slow(context: ToolContext, _arguments: dict[str, Any]) -> str:
        await context.stopped()
        return "never"

    bench = bench_of(
        composed("report", ("send", "b"), timeout=0.05),
        make_tool("send", slow, effect=Effect.WORKSPACE),
    )
    await bench.run(said("Go"))
    assert "did not finish" in result(bench)
    assert "unknown" in result(bench, "send")
    assert not History(bench.journal.entries).unanswered()


class Killed(Exception):
    """The process ends here."""


@pytest.mark.parametrize("effect", list(Effect))
async def test_killed_at_any_append_no_nested_call_is_lost_or_made_twice(effect: Effect):
    at = 0
    while await _survives(at, effect):
        at += 1
    assert at > 15, "every append was tried"


async def _survives(at: int, effect: Effect) -> bool:
    """Whether there was an append of this number; ended there, another process goes on."""
    did: list[str] = []
    report = composed("report", ("look", "a"), ("send", "b"), ("act", "c"))
    tools = (
        report,
        make_tool("look"),
        make_tool("send", noting(did), effect=effect),
        make_tool("act", noting(did), effect=effect),
    )
    bench = bench_of(*tools, rules=ASKS)
    left = at

    def kill(_journal: Any, _entries: Any) -> None:
        nonlocal left
        left -= 1
        if left == -1:
            raise Killed

    bench.journal.hook = kill
    killed = False
    posted: tuple[Any, ...] = (said("Go"),)
    for _attempt in range(8):
        if any(e.event.name == "report" for e in bench.entries(AgentToolUse)):
            bench.provider = scripted(reply("Done."))
        else:
            bench.provider = scripted(reply(call("report", text="go")), reply("Done."))
        try:
            await bench.run(*posted)
        except Killed:
            killed = True
        open_calls = History(bench.journal.entries).unanswered()
        asked = [c for c in open_calls if c.terms or c.unknown]
        posted = tuple(
            UserToolConfirmation(tool_use_id=c.uid, result="deny" if c.unknown else "allow")
            for c in asked
            if c.decision is None
        )
        if not History(bench.journal.entries).has_work and not posted:
            break
    assert not History(bench.journal.entries).unanswered()
    assert [text_of(e.content) for e in bench.events(AgentMessage)][-1] == "Done."
    result(bench)
    # What was under way when the process ended is unknown, and not made again.
    if effect is not Effect.READ:
        assert len(did) == len(set(did))
    assert set(did) == {"b", "c"} or bench.events(OutcomeUnknown) or "unknown" in result(bench)
    uses = [e.event.name for e in bench.entries(AgentToolUse) if e.event.within]
    assert uses == ["look", "send", "act"]
    return killed


async def test_a_handler_that_hides_an_error_of_the_seam_is_still_contained():
    async def broken(context: ToolContext, _arguments: dict[str, Any]) -> str:
        raise ToolError("It broke by itself.")

    bench = bench_of(make_tool("report", broken, composed=True))
    await bench.run(said("Go"))
    assert result(bench) == "It broke by itself."
