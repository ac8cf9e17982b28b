"""Self-hosted environments with the SDK's own worker: real processes, real commands, real files."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2 as httpx
import pytest
from anthropic.types.beta.environments import BetaHeartbeatPreconditionFailedError

from providers.scripted import call, reply
from tests.contract.conftest import World, error_type
from tests.contract.test_sessions import confirm, listed, text, wait_for, waiting
from tests.journeys.site import ROOT

TOOLS = [{"type": "agent_toolset_20260401"}]


class Machine:
    """A self-hosted environment with its key, and workers that can be started and killed."""

    def __init__(self, world: World, number: int, folder: Path) -> None:
        self.environment = world.machines[number]["environment"]
        self.key = world.machines[number]["key"]
        self.folder = folder
        self.world = world

    @contextmanager
    def worker(self) -> Iterator[subprocess.Popen[bytes]]:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.contract.worker"),
                *(self.world.address, self.environment, str(self.folder), "1"),
            ],
            cwd=ROOT,
            env={**os.environ, "WORKER_KEY": self.key},
            stderr=(self.folder.parent / "worker.txt").open("ab"),
            start_new_session=True,
        )
        try:
            yield process
        finally:
            # Its shells as well.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def client(self, secret: str = "") -> anthropic.Anthropic:
        """What a worker of one's own would use: the SDK with a key, or with an item's secret."""
        return anthropic.Anthropic(
            base_url=self.world.address,
            api_key=None,
            auth_token=secret or self.key,
            _strict_response_validation=True,
        )


@pytest.fixture
def machine(world: World, tmp_path: Path) -> Callable[[int], Machine]:
    def use(number: int) -> Machine:
        folder = tmp_path / "work"
        folder.mkdir()
        return Machine(world, number, folder)

    return use


@pytest.fixture
def begin(world: World, alice, make_agent):
    """A session of alice's in a machine's environment, whose first message gets these replies."""

    def start(machine: Machine, *answers: Any) -> str:
        opening = f"Opening {uuid.uuid4()}"
        world.service.expect(opening, *answers)
        session = alice.beta.sessions.create(
            agent=make_agent(tools=TOOLS).id,
            environment_id=machine.environment,
            initial_events=[text(opening)],
        )
        return str(session.id)

    return start


def ended(alice, session: str, seconds: float = 90.0) -> None:
    def done(_session: Any) -> bool:
        rests = listed(alice, session, types=["session.status_idle"])
        return bool(rests) and rests[-1].stop_reason.type == "end_turn"

    wait_for(alice, session, done, seconds)


def results(alice, session: str) -> list[str]:
    found = listed(alice, session, types=["user.tool_result"])
    return ["".join(block.text for block in event.content) for event in found]


def opened(secret: str) -> str:
    told = json.loads(base64.urlsafe_b64decode(secret + "=" * (-len(secret) % 4)))
    return str(told["sessions_token"])


def test_the_unmodified_worker_does_files_and_commands_and_waits_for_a_persons_word(
    alice, begin, machine
):
    here = machine(0)
    session = begin(
        here,
        reply(
            call("write_file", path="notes/a.txt", content="one two"),
            call("edit_file", path="notes/a.txt", old_text="two", new_text="three"),
        ),
        reply(
            call("read_file", path="notes/a.txt"),
            call("grep", pattern="three"),
            call("glob", pattern="**/*.txt"),
            call("bash", command="cat notes/a.txt && pwd > where.txt"),
        ),
        reply(call("bash", command="echo again >> notes/a.txt")),
        reply("Done."),
    )
    with here.worker():
        # What it answered, also to a write, may be anybody's words: each command asks.
        (first,) = wait_for_question(alice, session)
        assert (here.folder / "notes/a.txt").read_text() == "one three"
        alice.beta.sessions.events.send(session, events=[confirm(first)])
        (second,) = wait_for_question(alice, session, besides=first)
        assert (here.folder / "where.txt").read_text().strip() == str(here.folder)
        alice.beta.sessions.events.send(session, events=[confirm(second)])
        ended(alice, session)
    assert (here.folder / "notes/a.txt").read_text() == "one threeagain\n"
    said = results(alice, session)
    assert len(said) == 7
    assert said[2] == "one three"
    assert "a.txt:1:one three" in said[3]
    assert said[5] == "one three"
    events = listed(alice, session)
    assert not [event for event in events if event.type == "agent.tool_result"]
    used = [event for event in events if event.type == "agent.tool_use"]
    assert used[0].name == "write", "the name of the public toolset"
    assert used[0].x_name == "write_file", "and the one that rules are about"


def wait_for_question(alice, session: str, *, besides: str = "") -> list[str]:
    """The calls that wait for a person, once there are some that are not `besides`."""

    def asked() -> set[str]:
        calls = listed(alice, session, types=["agent.tool_use"])
        asking = {event.id for event in calls if event.evaluated_permission == "ask"} - {besides}
        rests = listed(alice, session, types=["session.status_idle"])
        if not rests or rests[-1].stop_reason.type != "requires_action":
            return set()
        return asking & set(rests[-1].stop_reason.event_ids)

    wait_for(alice, session, lambda _session: asked(), 90)
    return sorted(asked())


def test_a_killed_worker_loses_nothing_and_its_command_is_not_repeated_unasked(
    alice, begin, machine
):
    here = machine(1)
    session = begin(
        here,
        reply(call("bash", command="echo ran >> log.txt; test -f go || sleep 600")),
        reply("Done."),
    )
    log = here.folder / "log.txt"
    with here.worker():
        wait_for(alice, session, lambda _: log.exists(), 60)
        before = len(listed(alice, session, types=["session.status_idle"]))
    # Killed in the middle; the lease runs out, and a person is asked.
    (here.folder / "go").touch()
    with here.worker():
        wait_for(
            alice,
            session,
            lambda _: len(listed(alice, session, types=["session.status_idle"])) > before,
            60,
        )
        (asked,) = waiting(alice, session)
        assert log.read_text() == "ran\n"
        assert results(alice, session) == []
        alice.beta.sessions.events.send(session, events=[confirm(asked)])
        ended(alice, session)
    assert log.read_text() == "ran\nran\n"
    assert len(results(alice, session)) == 1


def test_every_operation_of_the_queue_by_the_sdks_own_resource(alice, staff, begin, machine):
    here = machine(2)
    queue = here.client().beta.environments.work
    empty = queue.poll(here.environment, block_ms=1, anthropic_worker_id="by-hand")
    assert empty is None
    session = begin(here, reply(call("read_file", path="a.txt")), reply("Done."))
    waiting(alice, session)
    stats = queue.stats(here.environment)
    assert (stats.depth, stats.pending, stats.workers_polling) == (1, 0, 1)
    assert stats.oldest_queued_at is not None
    item = queue.poll(here.environment, block_ms=999, anthropic_worker_id="by-hand")
    assert item is not None
    assert (item.state, item.data.id, item.environment_id) == ("queued", session, here.environment)
    assert queue.stats(here.environment).pending == 1
    assert queue.poll(here.environment) is None
    taken = queue.ack(item.id, environment_id=here.environment)
    assert (taken.state, taken.secret) == ("starting", None)

    own = here.client(opened(item.secret))
    first = own.beta.environments.work.heartbeat(
        item.id, environment_id=here.environment, expected_last_heartbeat="NO_HEARTBEAT"
    )
    assert (first.state, first.lease_extended, first.ttl_seconds) == ("active", True, 6)
    second = own.beta.environments.work.heartbeat(
        item.id,
        environment_id=here.environment,
        expected_last_heartbeat=first.last_heartbeat,
        desired_ttl_seconds=60,
    )
    assert second.ttl_seconds == 60
    with pytest.raises(BetaHeartbeatPreconditionFailedError) as stale:
        own.beta.environments.work.heartbeat(
            item.id,
            environment_id=here.environment,
            expected_last_heartbeat=first.last_heartbeat,
        )
    held = stale.value.details.current_state
    assert (held.last_heartbeat, held.lease_extended) == (second.last_heartbeat, False)

    assert own.beta.sessions.retrieve(session).id == session
    seen = list(own.beta.sessions.events.list(session, limit=1000))
    (use,) = [event for event in seen if event.type == "agent.tool_use"]
    assert (use.name, use.input, use.evaluated_permission) == (
        "read",
        {"file_path": "a.txt"},
        "allow",
    )
    assert not [event for event in seen if event.type in {"user.message", "agent.message"}]
    result = {
        "type": "user.tool_result",
        "tool_use_id": use.id,
        "content": [{"type": "text", "text": "x"}],
        "is_error": False,
    }
    sent = own.beta.sessions.events.send(session, events=[result])
    again = own.beta.sessions.events.send(session, events=[result])
    assert sent.data[0].id == again.data[0].id
    with pytest.raises(anthropic.BadRequestError):
        own.beta.sessions.events.send(session, events=[{**result, "is_error": True}])
    ended(alice, session)

    noted = staff.beta.environments.work.update(
        item.id, environment_id=here.environment, metadata={"rack": "7"}
    )
    assert noted.metadata == {"rack": "7"}
    winding_down = alice.beta.environments.work.stop(item.id, environment_id=here.environment)
    assert winding_down.state == "stopping"
    told = own.beta.environments.work.heartbeat(item.id, environment_id=here.environment)
    assert told.state == "stopping"
    stopped = own.beta.environments.work.stop(item.id, environment_id=here.environment, force=True)
    assert stopped.state == "stopped"
    with pytest.raises(anthropic.ConflictError):
        own.beta.environments.work.stop(item.id, environment_id=here.environment, force=True)
    assert alice.beta.environments.work.retrieve(
        item.id, environment_id=here.environment
    ).metadata == {"rack": "7"}
    assert [one.id for one in queue.list(here.environment)] == [item.id]
    with pytest.raises(anthropic.PermissionDeniedError):
        own.beta.sessions.retrieve(session)


def test_a_secret_opens_nothing_else_and_mallory_nothing_at_all(
    alice, mallory, world, begin, machine
):
    here = machine(3)
    session = begin(here, reply(call("read_file", path="a.txt")), reply("Done."))
    waiting(alice, session)
    keyed = here.client()
    item = keyed.beta.environments.work.poll(here.environment)
    keyed.beta.environments.work.ack(item.id, environment_id=here.environment)
    own = here.client(opened(item.secret))
    other = alice.beta.sessions.create(
        agent=alice.beta.sessions.retrieve(session).agent.id, environment_id=world.environment
    )
    (use,) = listed(alice, session, types=["agent.tool_use"])
    result = {"type": "user.tool_result", "tool_use_id": use.id}

    for refused in (
        lambda: alice.beta.environments.work.poll(here.environment),
        lambda: alice.beta.environments.work.ack(item.id, environment_id=here.environment),
        lambda: own.beta.environments.work.poll(here.environment),
        lambda: own.beta.sessions.events.send(session, events=[text("Hi")]),
        lambda: keyed.beta.sessions.retrieve(session),
        lambda: keyed.beta.sessions.events.send(session, events=[result]),
    ):
        with pytest.raises(anthropic.PermissionDeniedError) as caught:
            refused()
        assert error_type(caught) == "permission_error"
    for unknown in (
        lambda: own.beta.sessions.retrieve(other.id),
        lambda: own.beta.sessions.events.list(other.id),
        lambda: own.beta.sessions.events.stream(other.id).__enter__(),
        lambda: keyed.beta.environments.work.poll(world.machines[0]["environment"]),
        lambda: keyed.beta.environments.work.list(world.environment),
        lambda: mallory.beta.environments.work.list(here.environment),
        lambda: mallory.beta.environments.work.stats(here.environment),
        lambda: mallory.beta.environments.work.retrieve(item.id, environment_id=here.environment),
        lambda: mallory.beta.environments.work.stop(item.id, environment_id=here.environment),
    ):
        with pytest.raises(anthropic.NotFoundError) as missing:
            unknown()
        assert error_type(missing) == "not_found_error"
    for secret in (here.key + "x", "agw_nobodys", "age_"):
        stranger = here.client(secret)
        for attempt in (
            lambda stranger=stranger: stranger.beta.environments.work.poll(here.environment),
            lambda stranger=stranger: stranger.beta.sessions.retrieve(session),
            lambda stranger=stranger: stranger.beta.agents.list(),
        ):
            with pytest.raises(anthropic.AuthenticationError):
                attempt()
    for door in (own, keyed):
        with pytest.raises(anthropic.AuthenticationError):
            door.beta.sessions.list()
    with pytest.raises(anthropic.BadRequestError) as told:
        alice.beta.sessions.events.send(session, events=[result])
    assert "worker" in str(told.value)

    broken = {**result, "content": [{"type": "hologram"}]}
    answered = httpx.post(
        f"{world.address}/v1/sessions/{session}/events",
        headers={"Authorization": f"Bearer {opened(item.secret)}"},
        json={"events": [broken]},
    )
    assert answered.status_code == 400, "it was not told of the call yet"
    assert list(own.beta.sessions.events.list(session))
    taken = own.beta.sessions.events.send(session, events=[broken])
    assert taken.data[0].is_error
    ended(alice, session)


def test_an_environment_is_made_self_hosted_by_the_sdk(staff, world):
    with ExitStack() as stack:
        made = staff.beta.environments.create(name="By SDK", config={"type": "self_hosted"})
        stack.callback(staff.beta.environments.delete, made.id)
        assert made.config.type == "self_hosted"
        assert staff.beta.environments.retrieve(made.id).config.type == "self_hosted"
        changed = staff.beta.environments.update(made.id, config={"type": "cloud"})
        assert changed.config.type == "cloud"
