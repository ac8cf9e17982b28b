"""An MCP server that keeps to no rule: what it answers to which message is a test's to say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Answer = tuple[int, dict[str, str], bytes]
JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}
PING = b'data: {"jsonrpc":"2.0","id":7,"method":"ping"}\n\n'


def tool(name: str = "echo", description: str = "Says it again.", **more: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}, **more}


def result(message: Mapping[str, Any], held: Any) -> Answer:
    body = held if isinstance(held, bytes) else json.dumps(held).encode()
    head = b'{"jsonrpc":"2.0","id":%s,"result":' % json.dumps(message["id"]).encode()
    return 200, JSON, head + body + b"}"


@dataclass
class RawServer:
    """`speak` fits `Inside.speak`. `on` answers a method, or `GET`, in place of what it would say."""

    tools: list[dict[str, Any]] = field(default_factory=lambda: [tool()])
    on: dict[str, Callable[[dict[str, Any]], Answer]] = field(default_factory=dict)
    heard: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Each method that came, with its headers in small letters."""
    session: str = "a-session"
    url: str = ""

    def speak(self, method: str, headers: Mapping[str, str], body: bytes) -> Answer:
        message: dict[str, Any] = {}
        if method == "POST":
            try:
                message = json.loads(body)
            except ValueError:
                return 400, {}, b""
        name = method if method != "POST" else str(message.get("method", "answer"))
        self.heard.append((name, {each.lower(): value for each, value in headers.items()}))
        if name in self.on:
            return self.on[name](message)
        match name:
            case "initialize":
                told = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "raw", "version": "1"},
                }
                status, kind, text = result(message, told)
                return status, {**kind, "Mcp-Session-Id": self.session}, text
            case "tools/list":
                return result(message, {"tools": self.tools})
            case "tools/call":
                return result(message, {"content": [{"type": "text", "text": "said"}]})
            case _ if name == "answer" or name.startswith("notifications/"):
                return 202, JSON, b""
        return 405, {}, b""

    def count(self, name: str) -> int:
        return sum(each == name for each, _headers in self.heard)
