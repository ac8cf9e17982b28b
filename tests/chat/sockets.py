"""A browser without a screen: it speaks the socket's protocol and holds what a page would show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import orjson
from asgiref.sync import sync_to_async
from channels.testing import WebsocketCommunicator
from django.conf import settings
from django.test import Client

from accounts.models import User
from agentsite.asgi import application
from tests.patience import PATIENCE


@dataclass
class View:
    """What a page shows, put together from frames by the rules of the protocol."""

    units: dict[str, dict[str, Any]] = field(default_factory=dict)
    live: dict[str, str] = field(default_factory=dict)
    panels: dict[str, Any] = field(default_factory=dict)
    seq: int = 0
    gaps: int = 0
    finished: set[str] = field(default_factory=set)

    def take(self, frame: dict[str, Any]) -> None:
        match frame["type"]:
            case "changes":
                self.seq = frame["seq"]
                self.panels.update(frame["panels"])
                for unit in frame["units"]:
                    self.units[unit["key"]] = unit
                    for block in (unit["key"], *unit["members"]):
                        self.finished.add(block)
                        self.live.pop(block, None)
                for key in frame["removed"]:
                    self.units.pop(key, None)
            case "snapshot":
                for block in frame["blocks"]:
                    if block["block"] not in self.finished:
                        self.live[block["block"]] = block["text"]
            case "delta" if frame["block"] not in self.finished:
                held = self.live.get(frame["block"], "")
                if frame["offset"] > len(held):
                    self.gaps += 1
                    return
                self.live[frame["block"]] = held[: frame["offset"]] + frame["text"]
            case "closed":
                self.live.pop(frame["block"], None)

    def place(self, name: str) -> list[str]:
        """The HTML that stands in `log` or `queue`, in order."""
        here = [unit for unit in self.units.values() if unit["place"] == name]
        return [unit["html"] for unit in sorted(here, key=lambda unit: unit["order"])]

    @property
    def log(self) -> str:
        return "\n".join(self.place("log"))

    @property
    def status(self) -> str:
        return str(self.panels.get("status", ""))

    @property
    def text(self) -> str:
        return "".join(self.live.values())


class Browser:
    """One socket of one person. `view` is what her page shows, `frames` all she was sent."""

    def __init__(self, user: User | None, uid: str, after: str = "0") -> None:
        self.user = user
        self.address = f"/ws/conversations/{uid}/?after={after}"
        self.view = View()
        self.frames: list[dict[str, Any]] = []
        self.closed: int | None = None
        self._client = Client()

    async def __aenter__(self) -> Self:
        headers = [(b"origin", b"http://localhost"), (b"host", b"localhost")]
        if self.user is not None:
            await sync_to_async(self._client.force_login)(self.user)
            name = settings.SESSION_COOKIE_NAME
            cookie = f"{name}={self._client.cookies[name].value}"
            headers.append((b"cookie", cookie.encode()))
        self._line = WebsocketCommunicator(application, self.address, headers=headers)
        connected, _ = await self._line.connect(timeout=PATIENCE)
        assert connected
        return self

    async def __aexit__(self, *_exc: object) -> None:
        if self.closed is None:
            await self._line.disconnect(timeout=PATIENCE)

    async def say(self, **frame: Any) -> None:
        await self._line.send_to(text_data=orjson.dumps(frame).decode())

    async def say_raw(self, text: str | None = None, data: bytes | None = None) -> None:
        await self._line.send_input({"type": "websocket.receive", "text": text, "bytes": data})

    async def hear(self) -> dict[str, Any]:
        """The next frame, which the view has taken; the closing counts as one of type `close`."""
        output = await self._line.receive_output(timeout=PATIENCE)
        if output["type"] == "websocket.close":
            self.closed = output["code"]
            return {"type": "close", "code": self.closed}
        frame: dict[str, Any] = orjson.loads(output["text"])
        self.frames.append(frame)
        self.view.take(frame)
        return frame

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                frame = await self.hear()
                assert frame["type"] != "close", f"closed with {self.closed}: {self.frames[-3:]}"

    async def hear_a(self, kind: str) -> dict[str, Any]:
        """The next frame of that type, with all before it taken."""
        while (frame := await self.hear())["type"] != kind:
            assert frame["type"] != "close", f"closed with {self.closed}"
        return frame

    async def rest(self) -> None:
        """Until the page says that nothing runs and nothing waits."""
        await self.until(lambda: self.view.status and not self._busy)

    @property
    def _busy(self) -> bool:
        states = ("starting", "running", "rescheduling")
        busy = (*(f'data-status="{state}"' for state in states), "status-queued")
        return any(mark in self.view.status for mark in busy)
