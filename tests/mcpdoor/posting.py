"""Requests at `/mcp` as bytes, where a test wants to say what no client would."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from django.test import Client as Browser

META = "io.modelcontextprotocol/"
MODERN = "2026-07-28"
Post = Callable[..., Any]


def envelope(**capabilities: Any) -> dict[str, Any]:
    return {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": capabilities}


def modern(method: str, name: str = "") -> dict[str, str]:
    named = {"Mcp-Name": name} if name else {}
    return {"MCP-Protocol-Version": MODERN, "Mcp-Method": method, **named}


def posting(client: Browser, secret: str) -> Post:
    def send(body: Any, headers: Mapping[str, str] | None = None) -> Any:
        given = {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {secret}",
            **(headers or {}),
        }
        written = body if isinstance(body, str) else json.dumps(body)
        return client.post("/mcp", written, "application/json", headers=given)

    return send


def request(method: str, params: Any = None, meta: Any = None) -> dict[str, Any]:
    given = {**(params or {}), **({"_meta": meta} if meta is not None else {})}
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": given}


def code_of(answer: Any, status: int) -> int:
    assert answer.status_code == status, answer.content
    body = json.loads(answer.content)
    assert body["id"] == 7
    return int(body["error"]["code"])
