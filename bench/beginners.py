"""Those who begin: programs at `/api` and people at a page, as a helper process (`bench.commands`).

Each turn is a whole visit: a conversation comes into being, its socket is opened, something is asked, and
the answer is read to its end. `bench.browsers` has those who come to a conversation that is there.
"""

from __future__ import annotations

import asyncio
import re
import time
from functools import partial
from typing import Any

import aiohttp
import uvloop

from bench.browsers import Page, at_work
from bench.commands import answer_tasks
from bench.figures import Session, quantile
from bench.machine import family_seconds
from bench.plan import TURN_SECONDS, Load, Turns, run_load, run_turns
from bench.sockets import Socket, open_socket

CSRF_COOKIE = "0123456789abcdef" * 2
"""From an earlier visit; any 32 letters and digits will do."""
_CSRF = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')
_ORGANISATION = re.compile(r'name="shown_organisation" value="([\w-]+)"')
_SEQ = re.compile(r'data-seq="(\d+)"')
_SOCKET = re.compile(r'data-socket="([^"]+)"')


class Beginners:
    """`given` in a task says who they are: `secret` for programs; `cookie`, `agent` and `environment`
    for people."""

    async def perform(self, task: dict[str, Any]) -> dict[str, Any]:
        async with aiohttp.ClientSession(
            f"http://127.0.0.1:{task['port']}",
            timeout=aiohttp.ClientTimeout(total=TURN_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            connector=aiohttp.TCPConnector(limit=0),
        ) as http:
            kind = Program if task["door"] == "api" else Person
            visitor = kind(http, task["port"], task["given"])
            watched = task["watched"]
            match task["what"]:
                case "turns":
                    turns = Turns(**task["turns"])
                    converse = partial(_begin, visitor, turns.order)
                    return await run_turns(turns, converse, partial(family_seconds, watched))
                case "children":
                    return await _children(visitor, task["order"], watched)
                case "load":
                    load = Load(**task["load"])
                    converse = partial(_begin, visitor, load.order)
                    return (await run_load(load, converse, watched)).as_dict()
        raise ValueError(f"unknown task {task['what']!r}")


class Program:
    """A token at `/api`: POST the conversation, open its socket, ask, read until it is done."""

    def __init__(self, http: aiohttp.ClientSession, port: int, given: dict[str, str]) -> None:
        self._http = http
        self._port = port
        self._authorization = {"Authorization": f"Bearer {given['secret']}"}
        self._wanted = {"preset": given["agent"]}

    async def open(self, uid: str, query: str = "") -> Socket:
        """The conversation's socket, from now on if `query` does not say otherwise."""
        path = f"/api/chat/{uid}/ws{query}"
        socket = await open_socket(self._port, path, headers=self._authorization)
        while (await socket.receive())["type"] != "ready":
            pass
        return socket

    async def begin_team(self) -> str:
        begun = await self._post("/api/chat", {**self._wanted, "enable_teams": True})
        return str(begun["conversation_id"])

    async def begin(self, order: str, session: Session) -> None:
        session.asked = time.monotonic()
        uid = (await self._post("/api/chat", self._wanted))["conversation_id"]
        socket = await self.open(uid)
        try:
            socket.send({"type": "message", "content": order, "key": f"{session.asked}"})
            await self.read(socket, session)
        finally:
            socket.close()

    async def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self._http.post(path, json=body, headers=self._authorization) as response:
            answer: dict[str, Any] = await response.json()
            if response.status != 200:
                raise RuntimeError(f"POST {path} was answered {response.status}: {answer}")
            return answer

    async def read(self, socket: Socket, session: Session, since: float = 0.0) -> None:
        """To the answer's end; deltas that were due before `since` do not count."""
        while True:
            frame = await socket.receive()
            match frame["type"]:
                case "text_delta":
                    session.hear(frame["content"], time.monotonic(), since)
                case "error":
                    raise RuntimeError(frame["message"])
                case "done":
                    session.ended = time.monotonic()
                    return


async def _children(visitor: Any, order: str, watched: list[int]) -> dict[str, Any]:
    """Have children do what `order` says, and read each as it is told of: `before`, the processor clock when
    it was asked for, and how late what came in the sockets was."""
    uid = await visitor.begin_team()
    socket = await visitor.open(uid)
    reading: list[asyncio.Task[Session]] = []
    try:
        before = family_seconds(watched)
        socket.send({"type": "message", "content": order, "key": "1"})
        while (frame := await socket.receive())["type"] != "done":
            if frame["type"] == "error":
                raise RuntimeError(frame["message"])
            if frame["type"] == "subagent_start":
                reading.append(asyncio.ensure_future(_watch(visitor, frame["subagent_id"])))
        sessions = await asyncio.gather(*reading)
    finally:
        socket.close()
    late = [value for session in sessions for value in session.late]
    return {
        "before": before,
        "children": len(sessions),
        "deltas": len(late),
        "late_p99_ms": quantile(late, 0.99) * 1000,
    }


async def _watch(visitor: Any, uid: str) -> Session:
    """What came before it was looked at is not late; it may have ended by then, so all is told."""
    socket = await visitor.open(uid, "?after=0")
    session, since = Session(), time.monotonic()
    try:
        await visitor.read(socket, session, since)
    finally:
        socket.close()
    return session


class Person:
    """A browser that is signed in: the start page, its form, the conversation's page and socket."""

    def __init__(self, http: aiohttp.ClientSession, port: int, given: dict[str, str]) -> None:
        self._http = http
        self._port = port
        self._given = given
        self._cookies = given["cookie"] + f"; agentsite_csrf={CSRF_COOKIE}"

    async def begin(self, order: str, session: Session) -> None:
        session.asked = time.monotonic()
        form = await self._page("GET", "/new/")
        fields = {
            "csrfmiddlewaretoken": _found(_CSRF, form),
            "shown_organisation": _found(_ORGANISATION, form),
            "agent": self._given["agent"],
            "environment": self._given["environment"],
            "message": order,
        }
        page = await self._page("POST", "/new/", fields)
        path, seq = _found(_SOCKET, page), _found(_SEQ, page)
        socket = await open_socket(self._port, f"{path}?after={seq}", self._cookies)
        try:
            shown = Page(socket)
            # It may have ended before it was shown: then no frame says so.
            if at_work(page):
                await shown.rest()
            session.ended = time.monotonic()
        finally:
            socket.close()

    async def _page(self, method: str, path: str, fields: dict[str, str] | None = None) -> str:
        """What is shown in the end, behind redirects."""
        headers = {"Cookie": self._cookies}
        async with self._http.request(method, path, data=fields, headers=headers) as response:
            text = await response.text()
            if response.status != 200:
                raise RuntimeError(f"{method} {path} was answered {response.status}")
            return text


async def _begin(visitor: Program | Person, order: str, _number: int, session: Session) -> None:
    await visitor.begin(order, session)


def _found(pattern: re.Pattern[str], page: str) -> str:
    found = pattern.search(page)
    if found is None:
        raise RuntimeError(f"a page has no {pattern.pattern}")
    return found[1]


if __name__ == "__main__":
    uvloop.run(answer_tasks(Beginners().perform))
