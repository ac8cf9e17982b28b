"""Langfuse's public API for prompts, version 2, on loopback: as much of it as a reader needs."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

KEYS = "pk-lf-1:sk-lf-2"


@dataclass
class Langfuse:
    url: str
    prompts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """By name: the versions, each with `prompt`, `labels` and `type`."""
    away: int = 0
    """A status with which everything is answered."""
    asked: int = 0

    @property
    def host(self) -> str:
        return self.url.partition("//")[2]

    def put(self, name: str, prompt: Any, *labels: str) -> None:
        """A further version, to which these labels point from now on."""
        versions = self.prompts.setdefault(name, [])
        for each in versions:
            each["labels"] = [label for label in each["labels"] if label not in labels]
        versions.append({"prompt": prompt, "labels": list(labels), "version": len(versions) + 1})

    def answer(self, address: str) -> Any:
        """None: there is no such thing."""
        parts = urlsplit(address)
        query = {name: given[0] for name, given in parse_qs(parts.query).items()}
        start, _sign, name = parts.path.partition("/api/public/v2/prompts")
        if start or not _sign:
            return None
        if not name:
            size, page = int(query.get("limit", 10)), int(query.get("page", 1))
            names = sorted(self.prompts)
            rows = [
                {
                    "name": each,
                    "type": "text",
                    "versions": [one["version"] for one in self.prompts[each]],
                    "labels": [label for one in self.prompts[each] for label in one["labels"]],
                    "tags": [],
                }
                for each in names[(page - 1) * size : page * size]
            ]
            pages = -(-len(names) // size)
            meta = {"page": page, "limit": size, "totalItems": len(names), "totalPages": pages}
            return {"data": rows, "meta": meta}
        name = unquote(name[1:])
        for each in self.prompts.get(name, ()):
            if query["label"] in each["labels"]:
                kind = "text" if isinstance(each["prompt"], str) else "chat"
                return {"name": name, "type": kind, "config": {}, "tags": [], **each}
        return None


@contextmanager
def langfuse() -> Iterator[Langfuse]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked += 1
            pair = base64.b64encode(KEYS.encode()).decode()
            known = self.headers["Authorization"] == f"Basic {pair}"
            found = site.answer(self.path) if known else None
            status = site.away or (200 if found is not None else 404 if known else 401)
            body = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Langfuse(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
