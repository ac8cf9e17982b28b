"""A collector of OpenTelemetry on the loopback that keeps in memory what it is sent (OTLP/HTTP, JSON)."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


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

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
