"""A site on loopback from which skills are installed: pages as they are put there, and Git repositories,
answered by Git itself."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class SkillSite:
    url: str
    pages: dict[str, bytes] = field(default_factory=dict)
    """By path."""
    repositories: dict[str, Path] = field(default_factory=dict)
    """By path."""


@contextmanager
def skill_site() -> Iterator[SkillSite]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(site.pages.get(self.path))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            place = site.repositories.get(self.path.removesuffix("/git-upload-pack"))
            if place is None:
                self._answer(None)
                return
            done = subprocess.run(
                ["git", "upload-pack", "--stateless-rpc", str(place)],
                input=body,
                capture_output=True,
                check=False,
                env={"GIT_PROTOCOL": self.headers["Git-Protocol"], "PATH": "/usr/bin:/bin"},
            )
            self._answer(done.stdout)

        def _answer(self, body: bytes | None) -> None:
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = SkillSite(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
