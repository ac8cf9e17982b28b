"""A model service that only lists its models: for whoever asks whether a key opens it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET_WORDS = "what stands inside is nobody's business"


class ModelList:
    """Answers each GET with `status`, and notes who asked for what with which key."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.status = 200
        self.asked: list[tuple[str, str]] = []


@contextmanager
def model_list() -> Iterator[ModelList]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            key = self.headers.get("x-api-key") or self.headers.get("Authorization") or ""
            service.asked.append((self.path, key))
            body = SECRET_WORDS.encode()
            self.send_response(service.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service = ModelList(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
