"""What took how long in a turn: on its page, and as a collector is told of it."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from conversations.actions.messages import post_message
from conversations.models import Conversation, Event
from harness.events import (
    AgentMcpToolResult,
    AgentMcpToolUse,
    AgentToolUse,
    CallHandedOut,
    EndTurn,
    InputTaken,
    ModelUsage,
    RequiresAction,
    SessionStatusIdle,
    SessionStatusRunning,
    SpanModelRequestEnd,
    SpanModelRequestStart,
    SpanToolEnd,
    SpanToolStart,
    UserToolConfirmation,
    UserToolResult,
)
from harness.history import Entry
from hooks.events import HookAnswer, HooksAnswered
from providers.scripted import call
from tests.conversations.conftest import rested, still, until
from tests.subagents.conftest import ask, done, lead, scenes
from timelines.otlp import span_id, trace_id
from timelines.reading import timeline, turns_of
from timelines.spans import Span, turn_of

__all__ = ["lead"]

pytestmark = pytest.mark.django_db(transaction=True)


def names(span: Span) -> list[Any]:
    return [span.name, *map(names, span.spans)]


def at(second: float, uid: str, event: Any) -> Entry:
    return Entry(uid, event, int(second * 10) + 1, second)


def test_waits_for_a_person_and_calls_here_there_and_of_workers_have_their_times():
    use = AgentMcpToolUse(name="send", mcp_server_name="mail", input={"to": "secret"})
    usage = ModelUsage(input_tokens=5, cache_read_input_tokens=7, output_tokens=3)
    handed_out = CallHandedOut(tool_use_id="build", effect="write", name="bash", input={})
    turn = turn_of(
        [
            at(0, "begin", InputTaken(event_ids=("m",))),
            at(1, "asked", SpanModelRequestStart(provider="p", model="m-1")),
            at(3, "call", use),
            at(3, "end", SpanModelRequestEnd(model_request_start_id="asked", model_usage=usage)),
            at(4, "rest", SessionStatusIdle(stop_reason=RequiresAction(event_ids=("call",)))),
            at(60, "yes", UserToolConfirmation(tool_use_id="call", result="allow")),
            at(61, "again", SessionStatusRunning()),
            at(62, "go", SpanToolStart(tool_use_id="call", effect="outside")),
            at(64, "done", SpanToolEnd(tool_use_id="call", is_error=True)),
            at(64, "told", AgentMcpToolResult(mcp_tool_use_id="call", content=(), is_error=True)),
            at(64.1, "build", AgentToolUse(name="bash", input={})),
            at(64.2, "out", handed_out),
            at(64.8, "built", UserToolResult(tool_use_id="build", content=())),
            at(65, "over", SessionStatusIdle(stop_reason=EndTurn())),
            at(99, "next", InputTaken(event_ids=("n",))),
        ]
    )
    assert turn is not None
    assert (turn.uid, turn.start, turn.end) == ("begin", 0, 65)
    told = [(span.name, span.start, span.end, bool(span.failed)) for span in turn.spans]
    assert told == [
        ("chat m-1", 1, 3, False),
        ("approval send", 3, 60, False),
        ("rest", 4, 61, False),
        ("execute_tool send", 62, 64, True),
        ("execute_tool bash", 64.2, 64.8, False),
    ]
    model, *_waits, tool, _worked = turn.spans
    assert model.facts["gen_ai.usage.input_tokens"] == 12
    assert tool.facts["agentsite.mcp.server"] == "mail"
    assert tool.facts["mcp.method.name"] == "tools/call"


def test_a_turn_and_what_its_subagent_did_is_one_tree_at_the_collector(
    alice, lead, collector, client_of
):
    play = scenes([ask("count"), "Two."], count=[call("list_files"), "It is two."])
    conversation = done(lead(play))
    still()
    until(lambda: len(collector.bodies) >= 2)
    spans = {span["spanId"]: span for span in collector.spans}
    assert len({span["traceId"] for span in spans.values()}) == 1
    [root] = [span for span in spans.values() if "parentSpanId" not in span]
    beginning = turns_of(conversation)[-1]
    assert root["traceId"] == trace_id(beginning.uid)
    assert root["spanId"] == span_id(beginning.uid)
    assert all(span["parentSpanId"] in spans for span in spans.values() if span is not root)

    def way(span: dict[str, Any]) -> list[str]:
        above = spans.get(span.get("parentSpanId", ""))
        return [*(way(above) if above else ()), span["name"].partition(" ")[0]]

    deep = [way(span) for span in spans.values() if span["name"] == "execute_tool list_files"]
    assert deep == [["invoke_agent", "invoke_agent", "invoke_agent", "execute_tool"]]
    assert {header["authorization"] for header in collector.headers} == {"Bearer abc"}

    found = timeline(conversation, beginning)
    assert found is not None
    assert "execute_tool list_files" in str(names(found))
    page = client_of(alice).get(f"/c/{conversation.uid}/timeline/").content.decode()
    assert "list_files" in page
    assert trace_id(beginning.uid) in page


def test_nothing_that_was_said_is_sent(alice, converse, collector):
    conversation, _scripted = converse(
        [call("write_file", path="secret.txt", content="My secret plan"), "I keep the secret."]
    )
    post_message(actor=alice, conversation=conversation, text="A secret question")
    rested(conversation)
    still()
    until(lambda: collector.bodies)
    assert "execute_tool write_file" in collector.bodies[0]
    assert "secret" not in "".join(collector.bodies).lower()


@pytest.mark.parametrize("trouble", ["away", "refuses", "hangs"])
def test_a_collector_in_trouble_costs_a_run_nothing(
    alice, converse, collector, settings, caplog, trouble
):
    hold = threading.Event()
    if trouble == "away":
        settings.AGENTSITE_OTLP_ENDPOINT = "http://127.0.0.1:9"
    elif trouble == "refuses":
        collector.status = 503
    else:
        collector.hold = hold
    conversation, _scripted = converse(["One.", "Two."])
    for number, text in enumerate(("Hello", "Again"), 1):
        post_message(actor=alice, conversation=conversation, text=text)
        rested(conversation, number)
    assert conversation.events.filter(type="agent.message").count() == 2
    hold.set()
    with caplog.at_level(logging.WARNING):
        still()
    if trouble != "hangs":
        assert "trace" in caplog.text


def test_without_a_collector_no_job_is_begun(alice, converse, monkeypatch):
    from timelines import exporting  # noqa: PLC0415

    begun: list[str] = []
    monkeypatch.setattr(exporting, "dispatch", lambda name, **_: begun.append(name))
    conversation, _scripted = converse(["One."])
    post_message(actor=alice, conversation=conversation, text="Hello")
    rested(conversation)
    assert begun == []


def test_a_strangers_timeline_does_not_exist_and_an_empty_one_says_so(
    alice, mallory, converse, client_of
):
    conversation, _scripted = converse(["One."])
    address = f"/c/{conversation.uid}/timeline/"
    assert "There was no turn yet" in client_of(alice).get(address).content.decode()
    assert client_of(mallory).get(address).status_code == 404
    assert not Event.objects.filter(conversation__in=Conversation.objects.visible_to(mallory))


def test_hooks_have_the_times_that_they_took_before_their_answer_was_stored():
    told = (
        HookAnswer(hook="first", verdict="pass", milliseconds=500),
        HookAnswer(hook="second one", verdict="refuse", milliseconds=1_500, reason="secret"),
    )
    turn = turn_of(
        [
            at(0, "begin", InputTaken(event_ids=("m",))),
            at(1, "call", AgentToolUse(name="send", input={})),
            at(3, "asked", HooksAnswered(tool_use_id="call", told=told)),
            at(4, "rest", SessionStatusIdle(stop_reason=EndTurn())),
        ]
    )
    assert turn is not None
    assert [(each.kind, each.name, each.start, each.end, each.failed) for each in turn.spans] == [
        ("hook", "hook first", 1.0, 1.5, ""),
        ("hook", "hook second one", 1.5, 3.0, "refused"),
    ]
    assert "secret" not in str(turn)
