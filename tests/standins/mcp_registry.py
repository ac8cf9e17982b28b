"""A registry of MCP servers on loopback, whose entries and answers a test changes while it runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from tests.standins.mcp_server import served

OFFICIAL = "io.modelcontextprotocol.registry/official"
REMOTE: dict[str, Any] = {
    "name": "com.example/tracker",
    "title": "Tracker",
    "description": "Tracks what is to be done.",
    "version": "1.2.0",
    "remotes": [
        {
            "type": "streamable-http",
            "url": "https://{tenant}.example.org/mcp",
            "variables": {"tenant": {"description": "Whose.", "isRequired": True}},
            "headers": [
                {
                    "name": "Authorization",
                    "value": "Bearer {token}",
                    "variables": {"token": {"isRequired": True, "isSecret": True}},
                },
                {"name": "X-Region", "default": "eu", "choices": ["eu", "us"]},
            ],
        }
    ],
}


@dataclass
class Registry:
    url: str = ""
    servers: list[dict[str, Any]] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    instead: bytes | None = None
    """In place of any answer."""
    status: int = 200
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    cursor: str | None = None
    """Told with each page; None: what is right."""

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        self.asked.append((path, query))
        if self.instead is not None or self.status != 200:
            return self.status, self.instead or b""
        parts = [unquote(each) for each in path.split("/")[3:]]
        if len(parts) == 3:
            name, _versions, version = parts
            for each in self.servers:
                if each["name"] == name and version in {"latest", each["version"]}:
                    return 200, json.dumps(_entry(each)).encode()
            return 404, b'{"error": "Not Found"}'
        fitting = [each for each in self.servers if query.get("search", "") in each["name"]]
        begin, limit = int(query.get("cursor") or 0), int(query.get("limit", "30"))
        following = str(begin + limit) if begin + limit < len(fitting) else None
        told = self.cursor if self.cursor is not None else following
        page = fitting[begin : begin + limit]
        metadata = {"count": len(page), **({"nextCursor": told} if told else {})}
        return 200, json.dumps({"servers": [*map(_entry, page)], "metadata": metadata}).encode()


def _entry(server: dict[str, Any]) -> dict[str, Any]:
    return {"server": server, "_meta": {OFFICIAL: {"status": "active", "isLatest": True}}}


@contextmanager
def registry_served(at: int = 0) -> Iterator[Registry]:
    held = Registry()

    async def door(scope: Any, _receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        query = dict(parse_qsl(scope["query_string"].decode()))
        status, body = held.answer(scope["raw_path"].decode().partition("?")[0], query)
        headers = [(b"content-type", b"application/json"), *held.headers]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    with served(door, at) as port:
        held.url = f"http://127.0.0.1:{port}"
        yield held
