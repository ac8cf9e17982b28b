"""What a program does with a session, through whatever version of the SDK runs this file.

Stands alone: it is run by interpreters that have the SDK and nothing of this project. Each step that
holds is printed; what does not hold ends it.
"""

# Its types are those of several versions at once.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import anthropic
from anthropic import beta_async_tool

ADDRESS, TOKEN, READER = (os.environ[f"CLIENT_{name}"] for name in ("ADDRESS", "TOKEN", "READER"))
NAME, ENVIRONMENT = os.environ["CLIENT_NAME"], os.environ["CLIENT_ENVIRONMENT"]
ASKS = {
    "type": "agent_toolset_20260401",
    "default_config": {"enabled": True, "permission_policy": {"type": "always_ask"}},
}
WEATHER = {
    "type": "custom",
    "name": "weather",
    "description": "Says the weather.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}

client = anthropic.Anthropic(base_url=ADDRESS, api_key=TOKEN)
sessions = client.beta.sessions


def message(words):
    return {"type": "user.message", "content": [{"type": "text", "text": words}]}


def begin(agent, opening=None):
    first = {"initial_events": [message(f"{NAME}: {opening}")]} if opening else {}
    return sessions.create(agent=agent.id, environment_id=ENVIRONMENT, **first)


def logged(session):
    return list(sessions.events.list(session.id, limit=100))


def rested(session, *reasons):
    """The last event of a session once it rests for one of these reasons."""
    end = time.monotonic() + 60
    while True:
        last = logged(session)[-1]
        if last.type == "session.status_idle" and last.stop_reason.type in reasons:
            return last
        assert time.monotonic() < end, (last, reasons)
        time.sleep(0.1)


def refused(kind, attempt):
    raised = None
    try:
        attempt()
    except kind as error:
        raised = error
    assert raised is not None, f"{kind.__name__} was not raised"
    assert raised.body["type"] == "error", raised.body
    return raised


def agent_and_environment():
    environment = client.beta.environments.retrieve(ENVIRONMENT)
    assert environment.id in {one.id for one in client.beta.environments.list()}
    agent = client.beta.agents.create(
        name=f"{NAME} {time.time_ns()}", model="claude-sonnet-5-5", tools=[ASKS, WEATHER]
    )
    again = client.beta.agents.retrieve(agent.id)
    assert (again.id, again.version) == (agent.id, agent.version)
    renamed = client.beta.agents.update(
        agent.id, version=agent.version, system="Be brief.", description="A smoke test's."
    )
    assert renamed.description == "A smoke test's."
    return renamed


def stream_with_tool_use_and_confirmation(agent):
    session = begin(agent)
    seen = []
    with sessions.events.stream(session.id) as stream:
        sessions.events.send(session.id, events=[message(f"{NAME}: write")])
        for event in stream:
            seen.append(event)
            if event.type != "session.status_idle":
                continue
            if event.stop_reason.type != "requires_action":
                break
            (call,) = event.stop_reason.event_ids
            answer = {"type": "user.tool_confirmation", "tool_use_id": call, "result": "allow"}
            (sent,) = sessions.events.send(session.id, events=[answer]).data
            (again,) = sessions.events.send(session.id, events=[answer]).data
            assert sent.id == again.id
            other = {**answer, "result": "deny"}
            refused(
                anthropic.ConflictError,
                lambda other=other: sessions.events.send(session.id, events=[other]),
            )
    kinds = [event.type for event in seen if event.type != "ping"]
    assert kinds[0] == "user.message", kinds
    assert kinds.index("agent.tool_use") < kinds.index("agent.tool_result"), kinds
    (result,) = [event for event in seen if event.type == "agent.tool_result"]
    assert not result.is_error, result
    words = [event for event in seen if event.type == "agent.message"]
    assert words[-1].content[0].text == "Written.", words
    ids = [event.id for event in seen if event.type != "ping"]
    assert ids == [event.id for event in logged(session)], kinds
    return session


def a_call_that_is_denied(agent):
    session = begin(agent, "deny")
    (call,) = rested(session, "requires_action").stop_reason.event_ids
    denied = {
        "type": "user.tool_confirmation",
        "tool_use_id": call,
        "result": "deny",
        "deny_message": "Not today.",
    }
    sessions.events.send(session.id, events=[denied])
    rested(session, "end_turn")
    (result,) = [event for event in logged(session) if event.type == "agent.tool_result"]
    assert result.is_error
    assert "Not today." in result.content[0].text


def a_custom_tool_answered_by_hand(agent):
    session = begin(agent, "weather")
    (call,) = rested(session, "requires_action").stop_reason.event_ids
    (use,) = [event for event in logged(session) if event.type == "agent.custom_tool_use"]
    assert (use.id, use.name, use.input) == (call, "weather", {"city": "Oslo"})
    content = [{"type": "text", "text": "It snows."}]
    given = {"type": "user.custom_tool_result", "custom_tool_use_id": call, "content": content}
    sessions.events.send(session.id, events=[given])
    rested(session, "end_turn")


async def the_tool_runner_beside_a_held_confirmation(agent):
    """The runner answers the custom tool; the other call waits until it is confirmed here."""
    program = anthropic.AsyncAnthropic(base_url=ADDRESS, api_key=TOKEN)
    events = program.beta.sessions.events

    @beta_async_tool
    async def weather(city: str) -> str:
        """Say the weather in a city."""
        return f"It snows in {city}."

    session = begin(agent, "both")
    posted = {}
    async for call in events.tool_runner(session.id, tools=[weather], max_idle=1):
        posted[call.name] = call.posted
        if call.name == "weather":
            # What it answered has the other call asked about anew: others wrote it.
            rest = await asyncio.to_thread(rested, session, "requires_action")
            held = [
                {"type": "user.tool_confirmation", "tool_use_id": use, "result": "allow"}
                for use in rest.stop_reason.event_ids
            ]
            await events.send(session.id, events=held)
    assert posted.get("weather") is True, posted
    rested(session, "end_turn")
    found = logged(session)
    (given,) = [event for event in found if event.type == "user.custom_tool_result"]
    assert given.content[0].text == "It snows in Oslo."
    (written,) = [event for event in found if event.type == "agent.tool_result"]
    assert not written.is_error
    await program.close()


def an_interrupt(agent):
    session = begin(agent, "count")
    end = time.monotonic() + 60
    while not any(event.type == "span.model_request_start" for event in logged(session)):
        assert time.monotonic() < end
        time.sleep(0.1)
    refused(anthropic.ConflictError, lambda: sessions.delete(session.id))
    sessions.events.send(session.id, events=[{"type": "user.interrupt"}])
    rested(session, "end_turn")
    assert sessions.delete(session.id).id == session.id
    refused(anthropic.NotFoundError, lambda: sessions.retrieve(session.id))


def files(agent):
    source = Path("notes.txt")
    source.write_text("remember this", encoding="utf-8")
    file = client.beta.files.upload(file=source)
    assert file.filename == "notes.txt"
    assert client.beta.files.download(file.id).read() == b"remember this"
    resources = [{"type": "file", "file_id": file.id}]
    session = sessions.create(agent=agent.id, environment_id=ENVIRONMENT, resources=resources)
    (resource,) = session.resources
    assert resource.mount_path.endswith("/notes.txt")
    client.beta.files.delete(file.id)
    refused(anthropic.NotFoundError, lambda: client.beta.files.retrieve_metadata(file.id))


def paging(agent, session):
    mine = {begin(agent).id for _ in range(3)} | {session.id}
    first = sessions.list(agent_id=agent.id, limit=2)
    assert len(first.data) == 2
    assert first.has_next_page()
    listed = [one.id for one in sessions.list(agent_id=agent.id, limit=2)]
    assert len(listed) == len(set(listed))
    assert mine <= set(listed)
    whole = [event.id for event in logged(session)]
    assert [event.id for event in sessions.events.list(session.id, limit=3)] == whole
    down = [event.id for event in sessions.events.list(session.id, limit=3, order="desc")]
    assert down == whole[::-1]


def classes_of_errors(agent, session):
    def other(token):
        return anthropic.Anthropic(base_url=ADDRESS, api_key=token).beta.sessions

    refused(anthropic.AuthenticationError, lambda: other("ags_wrong").retrieve(session.id))
    refused(
        anthropic.PermissionDeniedError,
        lambda: other(READER).create(agent=agent.id, environment_id=ENVIRONMENT),
    )
    gone = refused(anthropic.NotFoundError, lambda: sessions.retrieve("sesn_1"))
    assert gone.body["error"]["type"] == "not_found_error"
    assert gone.request_id == gone.body["request_id"]
    bad = refused(
        anthropic.BadRequestError, lambda: sessions.events.send(session.id, events=[message("")])
    )
    assert bad.body["error"]["type"] == "invalid_request_error"


def webhooks_unwrap():
    """A delivery as it came to a receiver, and the same with another body."""
    came = json.loads(os.environ["CLIENT_DELIVERY"])
    webhooks = anthropic.Anthropic(api_key="unused", webhook_key=came["secret"]).beta.webhooks
    event = webhooks.unwrap(came["body"], headers=came["headers"])
    assert (event.type, event.data.type) == ("event", "session.created"), event
    changed = came["body"].replace("session.created", "session.deleted")
    believed = False
    try:
        webhooks.unwrap(changed, headers=came["headers"])
        believed = True
    except Exception as error:
        doubt = type(error).__name__
    assert not believed
    assert doubt == "WebhookVerificationError", doubt


def main():
    def step(name):
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()

    agent = agent_and_environment()
    step("agent and environment")
    session = stream_with_tool_use_and_confirmation(agent)
    step("stream, tool use, confirmation")
    a_call_that_is_denied(agent)
    step("denial")
    a_custom_tool_answered_by_hand(agent)
    step("custom tool")
    asyncio.run(the_tool_runner_beside_a_held_confirmation(agent))
    step("tool runner")
    an_interrupt(agent)
    step("interrupt")
    files(agent)
    step("files")
    paging(agent, session)
    step("paging")
    classes_of_errors(agent, session)
    step("errors")
    webhooks_unwrap()
    step("webhook")


main()
