"""Clients of both doors that follow one conversation, lose the line at random and come back.

Each ends once it has the event that the `Course` calls the last. What it heard is its transcript.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx2 as httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tests.followers.transcripts import Events, Frames, Said

LOSES = 0.02
"""How likely the line is lost behind any one frame."""
LOOK_SECONDS = 0.5
"""How often a quiet client looks whether it has come to the end."""
PATIENCE = 120.0
"""Seconds to open a connection while hundreds do."""


@dataclass
class Course:
    """What all clients follow. `last` is the number of the last event, once there is one."""

    address: str
    token: str
    uid: str
    last: int | None = None
    following: int = 0
    """Clients that have been let in once."""
    connections: int = 0
    lost: int = 0
    """Connections that could not be opened or broke off; a client tries again."""
    chance: random.Random = field(default_factory=random.Random)

    def over(self, seq: int) -> bool:
        return self.last is not None and seq >= self.last

    def loses(self) -> bool:
        return self.chance.random() < LOSES

    def entered(self, *, again: bool) -> None:
        self.connections += 1
        self.following += not again


async def by_events(course: Course, http: httpx.AsyncClient) -> list[Said]:
    """`GET /v1/sessions/{id}/events/stream`, from the last number on after each loss."""
    heard = Events()
    address = f"{course.address}/v1/sessions/{course.uid}/events/stream"
    again = False
    while not course.over(heard.seq):
        query = {"after_seq": str(heard.seq), "x_events": "true", "event_deltas[]": "agent.message"}
        try:
            async with http.stream("GET", address, params=query) as answer:
                assert answer.status_code == 200, await answer.aread()
                heard.connected()
                course.entered(again=again)
                again = True
                await _read(course, answer, heard)
        except httpx.TransportError:
            course.lost += 1
    return heard.said


async def _read(course: Course, answer: httpx.Response, heard: Events) -> None:
    async for event, seq in _events(answer):
        assert event["type"] != "error", event
        heard.take(event, seq)
        if course.over(heard.seq) or course.loses():
            return


async def _events(answer: httpx.Response) -> AsyncIterator[tuple[dict[str, object], int]]:
    seq = 0
    async for line in answer.aiter_lines():
        if line.startswith("id: "):
            seq = int(line[4:])
        elif line.startswith("data: "):
            yield json.loads(line[6:]), seq
            seq = 0


async def by_socket(course: Course) -> list[Said]:
    """`/api/chat/{id}/ws`, from the last number on after each loss."""
    heard = Frames()
    base = course.address.replace("http", "ws", 1)
    headers = {"Authorization": f"Bearer {course.token}"}
    again = False
    while not course.over(heard.seq):
        address = f"{base}/api/chat/{course.uid}/ws?after={heard.seq}"
        try:
            async with connect(
                address, additional_headers=headers, open_timeout=PATIENCE, max_size=None
            ) as line:
                heard.connected()
                course.entered(again=again)
                again = True
                await _listen(course, line, heard)
        except (OSError, WebSocketException):
            course.lost += 1
    return heard.said


async def _listen(course: Course, line: ClientConnection, heard: Frames) -> None:
    while not course.over(heard.seq):
        try:
            frame = json.loads(await asyncio.wait_for(line.recv(), LOOK_SECONDS))
        except TimeoutError:
            continue
        if frame["type"] != "ready":
            heard.take(frame)
        if course.loses():
            line.transport.abort()  # as a network does: no goodbye
            return
