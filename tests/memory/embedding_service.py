"""A service of embeddings on loopback, as OpenAI's wire has it: vectors by letters, and faults to order."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from memory.embedding.letters import Letters


class EmbeddingService:
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.refusals: list[tuple[int, dict[str, str]]] = []
        """What the next requests are answered with, in turn."""
        self.answer: Any = None
        """In the place of vectors."""
        self.answers = 0
        """After so many one is refused; 0: none is."""
        self.never = ""
        """Texts that have it are refused."""
        self.breaks_off = False
        """It sends half of an answer, and no more."""
        self.nothing = False
        """Every text is refused."""
        self.holds = threading.Event()
        self.holds.set()
        self.address = ""

    @property
    def texts(self) -> list[str]:
        return [text for each in self.asked for text in each["input"]]

    def reply(self, body: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
        self.asked.append(body)
        self.holds.wait(30)
        if self.refusals:
            status, headers = self.refusals.pop(0)
            return status, headers, {"error": {"message": "no"}}
        if self.answers and len(self.asked) == self.answers + 1:
            return 503, {}, {"error": {"message": "no"}}
        if self.answer is not None:
            return 200, {}, self.answer
        if self.nothing or (self.never and any(self.never in text for text in body["input"])):
            return 400, {}, {"error": {"message": "too long"}}
        rows = Letters().embed(body["input"])[:, : body.get("dimensions")].tolist()
        data = [{"index": place, "embedding": row} for place, row in enumerate(rows)]
        return 200, {}, {"data": data[::-1], "usage": {"total_tokens": 7 * len(rows)}}


@contextmanager
def embedding_service() -> Iterator[EmbeddingService]:
    service = EmbeddingService()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/embeddings"
            service.keys.append(self.headers["Authorization"])
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, answer = service.reply(body)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if service.breaks_off else data)

        def log_message(self, *_given: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.address = f"http://127.0.0.1:{server.server_port}/v1"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield service
        finally:
            service.holds.set()
            server.shutdown()
            thread.join()
