"""So many clients of each door at one conversation of a live server, while turns stream in it."""

from __future__ import annotations

import asyncio
import os
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import anthropic
import httpx2 as httpx

from providers.scripted import call, reply, say
from tests.contract.live import World
from tests.followers.lines import PATIENCE, Course, by_events, by_socket
from tests.followers.transcripts import Said, of_log

WORDS = "Of the words of this reply each client has to have every one, in their order, and once. "


@dataclass(frozen=True, slots=True)
class Outcome:
    clients: int
    connections: int
    events: int
    wrong: Counter[str]
    """How many transcripts of each door differ from the log."""
    threads: int
    """That the server had more while all followed than before they came."""
    worked: float
    """Seconds of processor time that the server spent meanwhile."""
    lost: int
    """Attempts to connect that failed; their clients tried again."""
    seconds: float

    @property
    def holds(self) -> bool:
        return not self.wrong


async def gather_crowd(world: World, each: int, turns: int = 3) -> Outcome:
    begun = time.monotonic()
    client = anthropic.AsyncAnthropic(base_url=world.address, api_key=world.tokens["alice"])
    agent = await client.beta.agents.create(
        name=f"Crowd {uuid.uuid4()}",
        model="claude-sonnet-5-5",
        tools=[{"type": "agent_toolset_20260401"}],
    )
    session = await client.beta.sessions.create(agent=agent.id, environment_id=world.environment)
    course = Course(world.address, world.tokens["alice"], session.id)
    before, worked = _threads(world), _processor_seconds(world)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    headers = {"x-api-key": world.tokens["alice"]}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE, limits=limits) as http:
        doors = {
            "events": [asyncio.create_task(by_events(course, http)) for _ in range(each)],
            "socket": [asyncio.create_task(by_socket(course)) for _ in range(each)],
        }
        everybody = [task for tasks in doors.values() for task in tasks]
        await _all_follow(course, everybody)
        during = _threads(world)
        for number in range(turns):
            await _turn(world, client, session.id, number)
        log = world.site.events(session.id)
        course.last = max(row.seq for row in log if row.type == "session.status_idle")
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*everybody)
        truth = of_log(log)
        wrong = Counter[str]()
        for door, tasks in doors.items():
            wrong[door] = sum(task.result() != truth for task in tasks)
    await client.close()
    return Outcome(
        clients=len(everybody),
        connections=course.connections,
        events=len(log),
        wrong=+wrong,
        threads=during - before,
        worked=_processor_seconds(world) - worked,
        lost=course.lost,
        seconds=time.monotonic() - begun,
    )


async def _all_follow(course: Course, everybody: list[asyncio.Task[list[Said]]]) -> None:
    async with asyncio.timeout(PATIENCE):
        while course.following < len(everybody):
            for task in everybody:
                if task.done():
                    task.result()  # it can only have failed
            await asyncio.sleep(0.05)


async def _turn(world: World, client: anthropic.AsyncAnthropic, uid: str, number: int) -> None:
    opening = f"Turn {uuid.uuid4()}"
    world.service.expect(
        opening,
        reply(
            say(WORDS), call("write_file", path=f"{number}.txt", content="x"), chunk=8, delay=0.02
        ),
        reply(say(WORDS * 2), chunk=8, delay=0.02),
    )
    message = {"type": "user.message", "content": [{"type": "text", "text": opening}]}
    await client.beta.sessions.events.send(uid, events=[message])  # type: ignore[list-item]
    async with asyncio.timeout(PATIENCE):
        while True:
            rests = await client.beta.sessions.events.list(uid, types=["session.status_idle"])
            if len(rests.data) > number:
                return
            await asyncio.sleep(0.2)


def _threads(world: World) -> int:
    return len(list((_process(world) / "task").iterdir()))


def _processor_seconds(world: World) -> float:
    # What stands behind the name, which may hold spaces; the 14th and 15th field of all.
    fields = (_process(world) / "stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _process(world: World) -> Path:
    process = world.site._process
    assert process is not None
    return Path(f"/proc/{process.pid}")
