"""`/agui` on a live server, every event checked by the protocol's own package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import uuid
from typing import Any

import httpx2 as httpx
import pytest
from ag_ui.core import Event, ResumeEntry, RunAgentInput, UserMessage
from pydantic import TypeAdapter

from providers.scripted import call, reply, say, think
from tests.contract.conftest import World
from tests.journeys.site import ROOT

EVENTS: TypeAdapter[Any] = TypeAdapter(Event)
ASKS = [
    {
        "type": "agent_toolset_20260401",
        "default_config": {"permission_policy": {"type": "always_ask"}},
    }
]


class Program:
    """A front end of alice's, or of whoever's token it is."""

    def __init__(self, world: World, agent: str = "", who: str = "alice") -> None:
        self.client = httpx.Client(
            base_url=world.address,
            headers={"Authorization": f"Bearer {world.tokens[who]}"},
            timeout=300,
        )
        self.choices = {"agent": agent, "environment": world.environment} if agent else {}

    def post(self, body: RunAgentInput) -> httpx.Response:
        return self.client.post(
            "/agui",
            params=self.choices,
            content=body.model_dump_json(by_alias=True).encode(),
            timeout=300,
        )

    def run(self, body: RunAgentInput) -> list[Any]:
        answer = self.post(body)
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("text/event-stream")
        found = re.findall(r"^data: (.*)$", answer.text, re.MULTILINE)
        events = [EVENTS.validate_python(json.loads(line)) for line in found]
        for event, line in zip(events, found, strict=True):
            assert json.loads(event.model_dump_json(by_alias=True)) == json.loads(line)
            assert not event.model_extra
        kinds = kinds_of(events)
        assert kinds.count("RUN_STARTED") == 1
        assert kinds[0] == "RUN_STARTED"
        assert [kind for kind in kinds if kind in {"RUN_FINISHED", "RUN_ERROR"}] == kinds[-1:]
        assert kinds.count("TEXT_MESSAGE_START") == kinds.count("TEXT_MESSAGE_END")
        return events


def kinds_of(events: list[Any]) -> list[str]:
    return [event.type.value for event in events]


def said_in(events: list[Any]) -> str:
    return "".join(e.delta for e in events if e.type.value == "TEXT_MESSAGE_CONTENT")


def conversation_of(events: list[Any]) -> str:
    told = [event for event in events if event.type.value == "CUSTOM"]
    found: str = next(e.value["id"] for e in told if e.name == "agentsite.conversation")
    return found


def asks(thread: str, words: str, run: str | None = None) -> RunAgentInput:
    return RunAgentInput(
        thread_id=thread,
        run_id=run or f"run-{uuid.uuid4()}",
        messages=[UserMessage(id=str(uuid.uuid4()), content=words)],
    )


def answers(thread: str, *resume: ResumeEntry, run: str | None = None) -> RunAgentInput:
    return RunAgentInput(
        thread_id=thread,
        run_id=run or f"run-{uuid.uuid4()}",
        messages=[],
        resume=list(resume),
    )


def resolved(interrupt: str, payload: Any) -> ResumeEntry:
    return ResumeEntry(interrupt_id=interrupt, status="resolved", payload=payload)


@pytest.fixture
def thread() -> str:
    return f"thread {uuid.uuid4()}"


@pytest.fixture
def opening(world):
    """A message that gets these replies."""

    def script(*replies: Any) -> str:
        words = f"Opening {uuid.uuid4()}"
        world.service.expect(words, *replies)
        return words

    return script


def test_a_run_tells_reasoning_and_text_and_is_told_the_same_again(
    world, make_agent, opening, thread
):
    program = Program(world, make_agent().id)
    body = asks(thread, opening(reply(think("Hm."), say("Hello there."))))
    events = program.run(body)
    assert said_in(events) == "Hello there."
    assert "REASONING_MESSAGE_CONTENT" in kinds_of(events)
    assert events[0].thread_id == thread
    assert events[-1].outcome.type == "success"
    assert events[-1].usage[0].output_tokens > 0
    again = program.run(body)
    assert said_in(again) == "Hello there."
    (conversation,) = {conversation_of(each) for each in (events, again)}
    page = program.client.get(f"/v1/sessions/{conversation}/events", params={"limit": 100}).json()
    assert [e["type"] for e in page["data"]].count("user.message") == 1
    # A message that another run brings goes to the same conversation; its history is not posted.
    second = asks(thread, opening(reply(say("Again."))))
    second.messages = [*body.messages, *second.messages]
    assert said_in(program.run(second)) == "Again."
    page = program.client.get(f"/v1/sessions/{conversation}/events", params={"limit": 100}).json()
    assert [e["type"] for e in page["data"]].count("user.message") == 2
    # A conversation's own id names it as well.
    assert said_in(program.run(asks(conversation, opening(reply(say("Third.")))))) == "Third."


@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_goes_round_and_only_what_was_allowed_runs(
    world, make_agent, opening, thread, approved
):
    program = Program(world, make_agent(tools=ASKS).id)
    body = asks(
        thread,
        opening(
            reply(call("write_file", path="note.txt", content="hello")), reply(say("Finished."))
        ),
    )
    events = program.run(body)
    assert {"TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END"} <= set(kinds_of(events))
    assert "TOOL_CALL_RESULT" not in kinds_of(events)
    (interrupt,) = events[-1].outcome.interrupts
    assert interrupt.reason == "tool_call"
    assert interrupt.response_schema["required"] == ["approved"]
    # While it is open, plain input is refused and nothing is posted.
    refused = program.run(asks(thread, "Something else"))
    assert (refused[-1].type.value, refused[-1].code) == ("RUN_ERROR", "conflict")
    # The first run, asked for again, ends as it did.
    assert program.run(body)[-1].outcome.interrupts[0].id == interrupt.id
    # A payload that does not fit changes nothing.
    wrong = program.post(answers(thread, resolved(interrupt.id, {"approved": "yes"})))
    assert wrong.status_code == 400
    assert wrong.json()["error"]["details"]["field"] == "resume[0].payload.approved"
    answer = answers(thread, resolved(interrupt.id, {"approved": approved}))
    resumed = program.run(answer)
    kinds = kinds_of(resumed)
    assert kinds.count("TOOL_CALL_RESULT") == 1
    assert "TOOL_CALL_START" not in kinds
    (result,) = [e for e in resumed if e.type.value == "TOOL_CALL_RESULT"]
    assert result.tool_call_id == interrupt.tool_call_id
    assert result.metadata["is_error"] is not approved
    assert said_in(resumed) == "Finished."
    assert resumed[-1].outcome.type == "success"
    # Replayed, it is no second answer; another answer is refused.
    assert said_in(program.run(answer)) == "Finished."
    other = program.run(answers(thread, resolved(interrupt.id, {"approved": not approved})))
    assert other[-1].type.value == "RUN_ERROR"
    assert "TOOL_CALL_RESULT" not in kinds_of(other)


def test_a_call_runs_with_the_arguments_that_a_person_put_in_its_place(
    world, make_agent, opening, thread
):
    program = Program(world, make_agent(tools=ASKS).id)
    write = call("write_file", path="note.txt", content="hello")
    events = program.run(asks(thread, opening(reply(write), reply(say("Finished.")))))
    (interrupt,) = events[-1].outcome.interrupts
    assert "editedArgs" in interrupt.response_schema["properties"]
    # Arguments that do not fit the tool change nothing.
    wrong = {"approved": True, "editedArgs": {"path": 7}}
    refused = program.post(answers(thread, resolved(interrupt.id, wrong)))
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["type"] == "invalid_request_error"
    edited = {"path": "other.txt", "content": "hello"}
    answer = answers(thread, resolved(interrupt.id, {"approved": True, "editedArgs": edited}))
    resumed = program.run(answer)
    (result,) = [e for e in resumed if e.type.value == "TOOL_CALL_RESULT"]
    assert "other.txt" in result.content
    assert said_in(program.run(answer)) == "Finished."
    other = {"approved": True, "editedArgs": {**edited, "path": "third.txt"}}
    late = program.run(answers(thread, resolved(interrupt.id, other)))
    assert (late[-1].type.value, late[-1].code) == ("RUN_ERROR", "already_decided")


def test_one_resume_answers_all_that_is_open_or_nothing_is_taken(
    world, make_agent, opening, thread
):
    program = Program(world, make_agent(tools=ASKS).id)
    events = program.run(
        asks(
            thread,
            opening(
                reply(
                    call("write_file", path="a.txt", content="a"),
                    call("write_file", path="b.txt", content="b"),
                ),
                reply(say("Both.")),
            ),
        )
    )
    first, second = events[-1].outcome.interrupts
    half = program.run(answers(thread, resolved(first.id, {"approved": True})))
    assert (half[-1].type.value, half[-1].code) == ("RUN_ERROR", "conflict")
    assert second.id in half[-1].message
    cancelled = ResumeEntry(interrupt_id=second.id, status="cancelled")
    resumed = program.run(answers(thread, resolved(first.id, {"approved": True}), cancelled))
    results = {
        e.tool_call_id: e.metadata["is_error"]
        for e in resumed
        if e.type.value == "TOOL_CALL_RESULT"
    }
    assert results == {first.tool_call_id: False, second.tool_call_id: True}


def test_mallorys_thread_of_the_same_name_is_her_own_and_alices_id_is_nobodys(
    world, make_agent, opening, thread, alice
):
    hers = Program(world, make_agent(tools=ASKS).id)
    words = opening(reply(call("write_file", path="a.txt", content="a")), reply(say("Done.")))
    events = hers.run(asks(thread, words))
    (interrupt,) = events[-1].outcome.interrupts
    conversation = conversation_of(events)
    mallory = Program(world, who="mallory")
    for name in (thread, conversation):
        answer = mallory.post(answers(name, resolved(interrupt.id, {"approved": True})))
        assert answer.status_code == 404, answer.text
    nobodys = mallory.post(asks("sesn_00000000000000000000000000", "Hello"))
    alices = mallory.post(asks(conversation, "Hello"))
    assert nobodys.status_code == alices.status_code == 404
    assert nobodys.json()["error"] == alices.json()["error"]
    # Nothing of it reached alice's call, which waits as before.
    session = alice.beta.sessions.retrieve(conversation)
    assert session.status == "idle"
    assert hers.run(answers(thread, resolved(interrupt.id, {"approved": False})))[-1].outcome


def test_a_custom_tools_call_is_an_interrupt_and_its_answer_a_result(
    world, make_agent, opening, thread
):
    tool = {
        "type": "custom",
        "name": "weather",
        "description": "The weather.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
    program = Program(world, make_agent(tools=[tool]).id)
    words = opening(reply(call("weather", city="Oslo")), reply(say("It snows.")))
    (interrupt,) = program.run(asks(thread, words))[-1].outcome.interrupts
    assert interrupt.reason == "agentsite:custom_tool"
    resumed = program.run(answers(thread, resolved(interrupt.id, {"sky": "snow"})))
    (result,) = [e for e in resumed if e.type.value == "TOOL_CALL_RESULT"]
    assert (result.tool_call_id, result.content) == (interrupt.tool_call_id, '{"sky":"snow"}')
    assert said_in(resumed) == "It snows."


def test_what_a_client_sends_in_vain_is_named(world, make_agent, opening, thread):
    body = asks(thread, opening(reply(say("Yes."))))
    body.forwarded_props = {"page": 3}
    events = Program(world, make_agent().id).run(body)
    ignored = [e.value for e in events if getattr(e, "name", "") == "agentsite.ignored"]
    assert ignored == [{"fields": ["forwardedProps"]}]


def test_a_run_id_used_for_another_message_is_refused(world, make_agent, opening, thread):
    program = Program(world, make_agent().id)
    program.run(asks(thread, opening(reply(say("One."))), run="same"))
    again = program.run(asks(thread, "Another", run="same"))
    assert (again[-1].type.value, again[-1].code) == ("RUN_ERROR", "conflict")


def test_the_example_of_the_page_runs(world):
    page = (ROOT / "docs" / "agui.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", code],
        env={
            "PATH": os.environ["PATH"],
            "AGENTSITE_URL": world.address,
            "AGENTSITE_TOKEN": world.tokens["alice"],
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^data: (.*)$", done.stdout, re.MULTILINE)
    kinds = kinds_of([EVENTS.validate_python(json.loads(line)) for line in lines])
    assert (kinds[0], kinds[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert "TEXT_MESSAGE_CONTENT" in kinds


def test_a_token_that_only_reads_and_bad_bodies_are_refused_before_anything_happens(world, thread):
    assert Program(world, who="reader").post(asks(thread, "Hello")).status_code == 403
    program = Program(world)
    nothing_new = RunAgentInput(thread_id=thread, run_id="1", messages=[])
    assert program.post(nothing_new).json()["error"]["details"]["field"] == "messages"
    assert program.client.post("/agui", content=b"{").status_code == 400
    assert program.client.post("/agui", content=b"[]").status_code == 400
    assert program.client.get("/agui").status_code == 405
    long = asks("x" * 201, "Hello")
    assert program.post(long).json()["error"]["details"]["field"] == "threadId"
