"""The whole of a conversation through one door alone: begun, followed, decided, stopped, gone on with,
and taken along."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self

import anthropic
import httpx2 as httpx
import pytest

from providers.scripted import Hold, call, reply, say
from tests.commandline.forks import Forks
from tests.contract.conftest import MakeAgent
from tests.contract.live import World
from tests.journeys.site import ROOT
from tests.patience import PATIENCE

ASKS = {
    "type": "agent_toolset_20260401",
    "default_config": {"enabled": True, "permission_policy": {"type": "always_ask"}},
}


class Story:
    """What is said in it, and what must have come of it in the end."""

    def __init__(self, world: World, agent: str) -> None:
        name = uuid.uuid4().hex
        self.agent = agent
        self.begin, self.count, self.go_on = (
            f"{what} {name}" for what in ("Write", "Count", "Go on")
        )
        self.hold = Hold()
        write = call("write_file", path="a.txt", content="x")
        world.service.expect(self.begin, reply(say("I write."), write), reply("Written."))
        world.service.expect(self.count, reply(say("One, two, ", self.hold, "three.")))
        world.service.expect(self.go_on, reply("Went on."))

    def counts(self) -> None:
        """Until the agent is in the middle of its sentence."""
        end = time.monotonic() + PATIENCE
        while not self.hold.reached.is_set():
            assert time.monotonic() < end
            time.sleep(0.02)

    def told_in(self, markdown: str) -> None:
        """Holds the export for people to the story."""
        told = [self.begin, "I write.", "write_file", "allowed", "Written.", self.count]
        places = [markdown.index(words) for words in [*told, "stopped", self.go_on, "Went on."]]
        assert places == sorted(places)

    def kept_in(self, exported: Any) -> None:
        """Holds the export for programs to it."""
        assert exported["format"] == "agentsite.conversation"
        numbers = [event["seq"] for event in exported["events"]]
        assert numbers == list(range(1, len(numbers) + 1))
        types = [event["type"] for event in exported["events"]]
        assert types.count("user.message") == 3
        assert types.count("user.tool_confirmation") == types.count("user.interrupt") == 1


@pytest.fixture
def story(world: World, make_agent: MakeAgent) -> Iterator[Story]:
    made = Story(world, make_agent(tools=[ASKS]).id)
    yield made
    made.hold.release.set()


def message(words: str) -> Any:
    return {"type": "user.message", "content": [{"type": "text", "text": words}]}


def allowed(uid: str) -> Any:
    return {"type": "user.tool_confirmation", "tool_use_id": uid, "result": "allow"}


def test_by_a_token_alone(world: World, story: Story):
    headers = {"authorization": f"Bearer {world.tokens['alice']}"}
    with httpx.Client(base_url=f"{world.address}/v1", headers=headers, timeout=60) as http:
        body = {"agent": story.agent, "environment_id": world.environment}
        begun = http.post("/sessions", json={**body, "initial_events": [message(story.begin)]})
        one = f"/sessions/{begun.json()['id']}"

        def send(*events: Any) -> None:
            answer = http.post(f"{one}/events", json={"events": events})
            assert answer.status_code == 200, answer.text

        def rest(after: int) -> tuple[int, Any]:
            """The next rest behind this event, and its number."""
            seq = after
            with http.stream("GET", f"{one}/events/stream?after_seq={after}") as answer:
                for line in answer.iter_lines():
                    if line.startswith("id: "):
                        seq = int(line[4:])
                    elif line.startswith("data: "):
                        event = json.loads(line[6:])
                        if event["type"] == "session.status_idle":
                            return seq, event["stop_reason"]
            raise AssertionError("the stream ended")

        seq, asked = rest(0)
        send(*map(allowed, asked["event_ids"]))
        seq, _done = rest(seq)
        send(message(story.count))
        story.counts()
        send({"type": "user.interrupt"})
        seq, _stopped = rest(seq)
        send(message(story.go_on))
        rest(seq)
        files = [http.get(f"{one}/export", params={"format": f}) for f in ("markdown", "json")]
        assert [file.headers["content-type"].partition(";")[0] for file in files] == [
            "text/markdown",
            "application/json",
        ]
        story.told_in(files[0].text)
        story.kept_in(files[1].json())
        wrong = http.get(f"{one}/export", params={"format": "docx"})
        assert (wrong.status_code, wrong.json()["error"]["details"]["field"]) == (400, "format")
        http.headers["authorization"] = f"Bearer {world.tokens['mallory']}"
        assert http.get(f"{one}/export").status_code == 404


def test_by_the_sdk_alone(
    alice: anthropic.Anthropic, mallory: anthropic.Anthropic, world: World, story: Story
):
    events = alice.beta.sessions.events
    session = alice.beta.sessions.create(agent=story.agent, environment_id=world.environment)

    def turn(said: Any, meanwhile: Callable[[], object] = lambda: None) -> Any:
        """The rest that comes of it."""
        with events.stream(session.id) as stream:
            events.send(session.id, events=[said])
            meanwhile()
            for event in stream:
                if event.type == "session.status_idle":
                    return event.stop_reason
        raise AssertionError("the stream ended")

    def stop() -> None:
        story.counts()
        events.send(session.id, events=[{"type": "user.interrupt"}])

    (asked,) = turn(message(story.begin)).event_ids
    assert turn(allowed(asked)).type == "end_turn"
    assert turn(message(story.count), stop).type == "end_turn"
    assert turn(message(story.go_on)).type == "end_turn"

    def export(client: anthropic.Anthropic, form: str) -> str:
        path = f"/v1/sessions/{session.id}/export"
        given = client.get(path, cast_to=httpx.Response, options={"params": {"format": form}})
        return given.content.decode()

    story.told_in(export(alice, "markdown"))
    story.kept_in(json.loads(export(alice, "json")))
    with pytest.raises(anthropic.NotFoundError):
        export(mallory, "json")


class Terminal:
    """A command line on a machine that has an address and a token, and no site of its own."""

    def __init__(self, world: World, directory: str) -> None:
        of_site = world.site.environment
        kept: dict[str, str] = {
            name: of_site[name] for name in ("PATH", "HOME", "LANG") if name in of_site
        }
        self._environment: dict[str, str] = {
            **kept,
            "AGENTSITE_DATA_DIR": directory,
            "AGENTSITE_ENV_FILE": "",
            "AGENTSITE_DEBUG": "true",
            "AGENTSITE_URL": world.address,
            "AGENTSITE_TOKEN": world.tokens["alice"],
        }

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "agent", *words],
            env=self._environment,
            cwd=self._environment["AGENTSITE_DATA_DIR"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        self._forks = Forks(self._environment)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._forks.close()

    def run(self, *words: str, code: int = 0) -> tuple[str, str]:
        """In a fork of one that has imported everything; `start` is a process from its beginning."""
        with TemporaryFile() as nothing, TemporaryFile() as out, TemporaryFile() as notes:
            ended = self._forks.run(
                ["agent", *words],
                environment=self._environment,
                directory=Path(self._environment["AGENTSITE_DATA_DIR"]),
                files=(nothing.fileno(), out.fileno(), notes.fileno()),
                seconds=300,
            )
            out.seek(0)
            notes.seek(0)
            said = out.read().decode(), notes.read().decode()
        assert ended == code, said[1]
        return said


def test_by_the_command_line_alone(world: World, story: Story, tmp_path):
    with Terminal(world, str(tmp_path)) as here:
        where = ("--agent", story.agent, "--environment", world.environment)
        out, notes = here.run("ask", story.begin, *where, code=3)
        assert out == "I write.\n"
        found = re.search(r"agent approve (sesn_\w+) (\w+)", notes)
        assert found, notes
        uid, asked = found.groups()
        here.run("approve", uid, asked)
        with here.start("ask", story.count, "--conversation", uid) as asking:
            story.counts()
            here.run("stop", uid)
            out, notes = asking.communicate(timeout=300)
        assert (out, asking.returncode) == ("One, two, \n", 130), notes
        out, _notes = here.run("ask", story.go_on, "--conversation", uid)
        assert out == "Went on.\n"
        story.told_in(here.run("export", uid, "--format", "markdown")[0])
