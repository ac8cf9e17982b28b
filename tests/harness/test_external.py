"""Calls that are answered outside: custom tools and questions to people."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from harness.agentconfig import AgentConfig, AskOptions, CustomTool, Features, ToolRule
from harness.content import Text, text_of
from harness.events import (
    AgentCustomToolUse,
    AgentMessage,
    AgentToolResult,
    AgentToolUse,
    RequiresAction,
    SessionStatusIdle,
    UserCustomToolResult,
    UserInterrupt,
    UserToolConfirmation,
)
from harness.tools import Effect
from providers.scripted import call, garbled_call, reply
from tests.harness.bench import Bench, make_tool, noting, said, scripted

STOCK = CustomTool(
    name="look_up_stock",
    description="How many of an article are left.",
    input_schema={
        "type": "object",
        "properties": {"article": {"type": "string"}},
        "required": ["article"],
        "additionalProperties": False,
    },
)


def bench_with(*replies: Any, **more: Any) -> Bench:
    config = {"custom_tools": (STOCK,), **more.pop("config", {})}
    return Bench(scripted(*replies), config=config, **more)


def answer(uid: str, words: str, *, is_error: bool = False) -> UserCustomToolResult:
    return UserCustomToolResult(
        custom_tool_use_id=uid, content=(Text(text=words),), is_error=is_error
    )


def waiting(bench: Bench) -> list[tuple[str, ...]]:
    return [
        rest.stop_reason.event_ids
        for rest in bench.events(SessionStatusIdle)
        if isinstance(rest.stop_reason, RequiresAction)
    ]


async def test_a_custom_call_rests_the_run_and_its_result_resumes_it_once():
    bench = bench_with(reply(call("look_up_stock", article="A-113")), reply("14 are left."))
    await bench.run(said("How many?"))

    (asked,) = bench.entries(AgentCustomToolUse)
    assert waiting(bench) == [(asked.uid,)]
    assert len(bench.requests) == 1
    await bench.run()
    assert len(bench.requests) == 1, "a second run before the answer does nothing"

    await bench.run(answer(asked.uid, "14"))
    assert [text_of(event.content) for event in bench.events(AgentMessage)] == ["14 are left."]
    await bench.run(answer(asked.uid, "15"))
    assert len(bench.requests) == 2
    answers = [
        text_of(part.content)
        for message in bench.requests[1].messages
        for part in message.parts
        if hasattr(part, "call_id")
    ]
    assert answers == ["14"]


async def test_the_model_is_offered_the_custom_tool_with_its_schema():
    bench = bench_with(reply("Hello."), rules=(ToolRule(tool="read_*"),))
    await bench.run(said("Hi"))
    (offered,) = bench.requests[0].tools
    assert (offered.name, offered.input_schema) == ("look_up_stock", STOCK.input_schema)


async def test_a_custom_call_that_breaks_its_schema_reaches_nobody():
    bench = bench_with(
        reply(call("look_up_stock", number=7), garbled_call("look_up_stock", "{no")),
        reply("I see."),
    )
    await bench.run(said("How many?"))
    first, second = bench.events(AgentToolResult)
    assert first.is_error
    assert "article" in text_of(first.content)
    assert "not a JSON object" in text_of(second.content)
    assert waiting(bench) == []


async def test_a_rule_may_deny_a_custom_tool_and_plan_mode_offers_none():
    denied = ToolRule(tool="look_*", permission="always_deny")
    for more in ({"rules": (denied,)}, {"features": Features(plan_mode=True)}):
        bench = bench_with(reply(call("look_up_stock", article="A")), reply("Then not."), **more)
        await bench.run(said("How many?"))
        assert bench.requests[0].tools == ()
        assert bench.events(AgentCustomToolUse) == []
        (use,) = bench.events(AgentToolUse)
        (refused,) = bench.events(AgentToolResult)
        assert use.evaluated_permission == "deny"
        assert refused.outcome == "denied"


async def test_a_rule_that_asks_does_not_ask_before_a_call_that_others_answer():
    asking = ToolRule(tool="*", permission="always_ask")
    bench = bench_with(reply(call("look_up_stock", article="A")), reply("Done."), rules=(asking,))
    await bench.run(said("How many?"))
    (asked,) = bench.entries(AgentCustomToolUse)
    await bench.run(answer(asked.uid, "3"))
    assert bench.journal.types[-1] == "session.status_idle"
    assert len(bench.requests) == 2


@pytest.mark.parametrize("condition", ["two_people", "reviewers_only", "requester_may_not_decide"])
async def test_where_people_are_asked_for_no_program_answers_alone(condition: str):
    wanted = AskOptions(**{condition: True})
    asking = ToolRule(tool="look_*", permission="always_ask", options=wanted)
    bench = bench_with(
        reply(call("look_up_stock", article="A")), reply("Then not."), rules=(asking,)
    )
    await bench.run(said("How many?"))
    assert bench.events(AgentCustomToolUse) == []
    (refused,) = bench.events(AgentToolResult)
    assert refused.outcome == "denied"
    assert "a program alone answers look_up_stock" in text_of(refused.content)


async def test_a_stop_answers_a_waiting_custom_call_as_stopped():
    bench = bench_with(reply(call("look_up_stock", article="A")), reply("Never."))
    await bench.run(said("How many?"))
    await bench.run(UserInterrupt())
    (result,) = bench.events(AgentToolResult)
    assert result.outcome == "stopped"
    (asked,) = bench.entries(AgentCustomToolUse)
    await bench.run(answer(asked.uid, "late"))
    assert len(bench.requests) == 1


async def test_what_still_waits_is_told_again_when_one_of_two_calls_is_answered():
    """Managed Agents: a partial resolution rests again with what is left."""
    notes: list[str] = []
    write = make_tool("write", noting(notes), effect=Effect.WORKSPACE)
    bench = bench_with(
        reply(call("look_up_stock", article="A"), call("write", text="x")),
        reply("Done."),
        tools=(write,),
        features=Features(approval=True),
    )
    await bench.run(said("Do both."))
    (custom,), (asking,) = bench.entries(AgentCustomToolUse), bench.entries(AgentToolUse)
    await bench.run(answer(custom.uid, "3"))
    assert waiting(bench) == [(custom.uid, asking.uid), (asking.uid,)]
    assert notes == []
    await bench.run(UserToolConfirmation(tool_use_id=asking.uid, result="allow"))
    assert notes == ["x"]
    assert len(bench.requests) == 2


async def test_an_answer_that_comes_with_the_rest_is_not_forgotten():
    """The answer lies before the rest that names its call: the same run goes on."""
    bench = bench_with(reply(call("look_up_stock", article="A")), reply("3 are left."))

    def answers_at_once(journal: Any, entries: Any) -> None:
        if isinstance(entries[-1].event, SessionStatusIdle) and bench.provider.requests:
            (asked,) = [e for e in journal.entries if isinstance(e.event, AgentCustomToolUse)]
            if not any(isinstance(e.event, UserCustomToolResult) for e in journal.entries):
                journal.post(answer(asked.uid, "3"))

    bench.journal.hook = answers_at_once
    await bench.run(said("How many?"))
    assert len(bench.requests) == 2


def test_two_custom_tools_of_one_name_are_refused():
    with pytest.raises(ValidationError, match="two tools are called"):
        AgentConfig(custom_tools=(STOCK, STOCK))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": "a b"}, "letters, digits"),
        ({"name": "x" * 65}, "1 to 64"),
        ({"name": "mcp__a__b"}, "MCP"),
        ({"description": ""}, "at least 1"),
        ({"input_schema": {"type": "array"}}, "object"),
        ({"input_schema": {"type": "object", "required": "a"}}, "no JSON schema"),
        ({"input_schema": {"type": "object", "$ref": "https://a.example/x"}}, "own parts"),
        (
            {"input_schema": {"type": "object", "description": "x" * 64_001}},
            "longer than 64,000",
        ),
    ],
)
def test_a_custom_tool_that_breaks_a_rule_is_refused_in_words(change: dict[str, Any], words: str):
    with pytest.raises(ValidationError, match=words):
        CustomTool(**{"name": "ok", "description": "Fine.", **change})


def test_a_schema_may_refer_to_its_own_parts():
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/word"}},
        "$defs": {"word": {"type": "string"}},
    }
    assert CustomTool(name="ok", description="Fine.", input_schema=schema).input_schema == schema
