"""Conversations with scripts, leads with subagents, and a collector on the loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.conversations.conftest import converse, environment, make_agent, still_engine

__all__ = ["converse", "environment", "make_agent", "still_engine"]


class Collector:
    """Takes what OTLP over HTTP sends; `status` is what it answers, `hold` keeps it from answering."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.bodies: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.hold: threading.Event | None = None
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                if collector.hold is not None:
                    collector.hold.wait()
                collector.headers.append({k.lower(): v for k, v in self.headers.items()})
                collector.bodies.append(body)
                for resource in json.loads(body)["resourceSpans"]:
                    for scope in resource["scopeSpans"]:
                        collector.spans.extend(scope["spans"])
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def collector(settings) -> Iterator[Collector]:
    made = Collector()
    settings.AGENTSITE_OTLP_ENDPOINT = made.address
    settings.AGENTSITE_OTLP_HEADERS = {"authorization": "Bearer abc"}
    yield made
    made.server.shutdown()
    made.server.server_close()
