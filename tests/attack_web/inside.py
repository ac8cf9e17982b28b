"""A service inside the network, which strangers cannot reach but this server could."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

INNER = "numbat-77c1"
"""What it answers; nobody outside may read it."""


class Inside:
    """A service that only this server can reach: loopback, speaks HTTP, notes every visit."""

    def __init__(self) -> None:
        self.visits: list[str] = []
        self.answer: Callable[[str], tuple[int, dict[str, str], bytes]] | None = None
        self.speak: Callable[..., tuple[int, dict[str, str], bytes]] | None = None
        """As `answer`, of a method, the headers and the body."""
        inside = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                sent = self.rfile.read(length)
                body = sent.decode(errors="replace")
                inside.visits.append(
                    f"{self.command} {self.path} {json.dumps(dict(self.headers))} {body}"
                )
                if inside.speak is not None:
                    status, headers, said = inside.speak(self.command, self.headers, sent)
                elif inside.answer is not None:
                    status, headers, said = inside.answer(self.path)
                else:
                    status, headers, said = 200, {}, INNER.encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                try:
                    self.wfile.write(said)
                except OSError:  # it had enough
                    self.close_connection = True

            do_POST = do_PUT = do_DELETE = do_HEAD = do_GET  # noqa: N815 - http.server's names

            def log_message(self, *_args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_port)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
