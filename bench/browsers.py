"""The load: people with open conversations, as a helper process (`bench.commands`).

Each session opens a socket, posts a message and reads what streams, and notes when each delta came.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import uvloop

from bench.commands import answer_tasks
from bench.figures import STAMP, Session
from bench.machine import memory_kb
from bench.plan import Load, run_load
from bench.sockets import Socket, open_socket

PATIENCE = 60.0
_AT_WORK = (
    'data-status="starting"',
    'data-status="running"',
    'data-status="rescheduling"',
    "status-queued",
)


class Browsers:
    """`conversations` in a task is a list of `[uid, session cookie]`, each used once."""

    async def perform(self, task: dict[str, Any]) -> dict[str, Any]:
        self._port = int(task["port"])
        conversations = task["conversations"]
        match task["what"]:
            case "load":
                return await self._load(Load(**task["load"]), conversations, task["watched"])
            case "first":
                return {"ms": [await self._first(*one) * 1000 for one in conversations]}
            case "post":
                return await self._post(conversations[0], task["order"])
            case "idle":
                return await self._idle(conversations, task["watched"])
            case "streaming":
                return await self._streaming(conversations, task["watched"])
        raise ValueError(f"unknown task {task['what']!r}")

    async def _open(self, uid: str, cookie: str) -> Socket:
        return await open_socket(self._port, f"/ws/conversations/{uid}/", cookie)

    # --- streaming --------------------------------------------------------------------------------

    async def _load(
        self, load: Load, conversations: list[list[str]], watched: list[int]
    ) -> dict[str, Any]:
        async def converse(number: int, session: Session) -> None:
            socket = await self._open(*conversations[number])
            try:
                await _converse(Page(socket), load.order, session, 1 / load.per_second)
            finally:
                socket.close()

        return (await run_load(load, converse, watched)).as_dict()

    async def _first(self, uid: str, cookie: str) -> float:
        """Seconds from posting to the first delta, of an open page; then until it rests."""
        socket = await self._open(uid, cookie)
        try:
            await socket.receive()  # the snapshot: the page is there
            await asyncio.sleep(0.02)
            session, page = Session(wanted=5), Page(socket)
            await _converse(page, "bench stream 5 0", session)
            await page.rest()
            return session.first - session.asked
        finally:
            socket.close()

    async def _post(self, conversation: list[str], order: str) -> dict[str, Any]:
        """Post `order` and go away."""
        socket = await self._open(*conversation)
        try:
            page = Page(socket)
            page.post(order)
            while (await page.receive())["type"] != "accepted":
                pass
            return {}
        finally:
            socket.close()

    # --- memory -----------------------------------------------------------------------------------

    async def _idle(self, conversations: list[list[str]], watched: list[int]) -> dict[str, Any]:
        before = memory_kb(watched)
        sockets = [await self._open(*one) for one in conversations]
        try:
            await asyncio.sleep(2.0)
            return {"kb": (memory_kb(watched) - before) / len(sockets)}
        finally:
            for socket in sockets:
                socket.close()
            await asyncio.sleep(1.0)

    async def _streaming(
        self, conversations: list[list[str]], watched: list[int]
    ) -> dict[str, Any]:
        """Open sockets count as streaming too: people watch."""
        before = memory_kb(watched)
        sockets = [await self._open(*one) for one in conversations]
        pages = [Page(socket) for socket in sockets]
        try:
            for page in pages:
                page.post("bench stream 600 50")
                await asyncio.sleep(0.02)
            await asyncio.sleep(4.0)
            return {"kb": (memory_kb(watched) - before) / len(sockets)}
        finally:
            for socket, page in zip(sockets, pages, strict=True):
                await page.rest()
                socket.close()


class Page:
    """What the browser knows of one conversation from the frames it was sent."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self.rests = False

    async def receive(self) -> dict[str, Any]:
        frame = await self._socket.receive()
        if frame["type"] == "error":
            raise RuntimeError(frame["message"])
        status = frame["panels"].get("status") if frame["type"] == "changes" else None
        if status:
            self.rests = not at_work(status)
        return frame

    def post(self, text: str) -> None:
        self.rests = False
        self._socket.send({"type": "message", "content": text, "key": f"{time.monotonic()}"})

    async def rest(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while not self.rests:
                await self.receive()


def at_work(html: str) -> bool:
    """Whether what is shown of a conversation says that it works, or is about to."""
    return any(word in html for word in _AT_WORK)


async def _converse(page: Page, order: str, session: Session, gap: float = 0.0) -> None:
    """Post, and read deltas: the last ones may come with the finished text."""
    session.asked = time.monotonic()
    page.post(order)
    seen, first_due = 0, 0.0
    while len(session.late) < session.wanted:
        frame = await page.receive()
        match frame["type"]:
            case "delta":
                new = frame["text"][max(0, seen - frame["offset"]) :]
            case "snapshot":
                new = "".join(block["text"] for block in frame["blocks"])[seen:]
            case "closed":
                new = ""
            case _:
                continue
        now = time.monotonic()
        if frame["type"] == "closed":
            numbers = range(len(session.late), session.wanted)
            session.late += [now - (first_due + number * gap) for number in numbers]
        elif new and not session.first:
            first_due = float(new[: STAMP - 1])
        seen += len(new)
        session.hear(new, now)
    session.ended = time.monotonic()


if __name__ == "__main__":
    uvloop.run(answer_tasks(Browsers().perform))
