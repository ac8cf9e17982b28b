"""A program that speaks the chat protocol over real HTTP and real sockets, and knows nothing else."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, urlencode

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.patience import PATIENCE

TERMINAL = ("done", "interrupted")


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)

    @property
    def code(self) -> str:
        """Of the one shape that errors have."""
        error = self.json["error"]
        assert set(error) - {"faults"} == {"code", "message", "hint", "field"}, error
        assert error["message"]
        return str(error["code"])


class Api:
    """One program with one token (or none)."""

    def __init__(self, address: str, token: str | None = None, header: str = "bearer") -> None:
        self.address = address
        self.token = token
        self.header = header

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        **query: Any,
    ) -> Answer:
        address = f"{self.address}{path}" + (f"?{urlencode(query)}" if query else "")
        request = urllib.request.Request(address, data=body, method=method)
        if self.token and self.header == "bearer":
            request.add_header("Authorization", f"Bearer {self.token}")
        elif self.token:
            request.add_header("x-api-key", self.token)
        for name, value in (headers or {}).items():
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as problem:
            return Answer(problem.code, dict(problem.headers), problem.read())

    def get(self, path: str, **query: Any) -> Answer:
        return self.request("GET", path, **query)

    def delete(self, path: str) -> Answer:
        return self.request("DELETE", path)

    def post(self, path: str, data: Any = None, **query: Any) -> Answer:
        body = b"" if data is None else json.dumps(data).encode()
        headers = {"Content-Type": "application/json"} if data is not None else {}
        return self.request("POST", path, body, headers, **query)

    def upload(
        self, files: Sequence[tuple[str, bytes]], name_of_field: str = "files", **query: Any
    ) -> Answer:
        edge = "edge-of-a-part"
        parts = b"".join(
            f'--{edge}\r\nContent-Disposition: form-data; name="{name_of_field}"; filename="{name}"\r\n'
            f"Content-Type: application/octet-stream\r\n\r\n".encode()
            + data
            + b"\r\n"
            for name, data in files
        )
        headers = {"Content-Type": f"multipart/form-data; boundary={edge}"}
        body = parts + f"--{edge}--\r\n".encode()
        return self.request("POST", "/api/workspace/upload", body, headers, **query)

    def begin(self, **switches: Any) -> str:
        answer = self.post("/api/chat", switches)
        assert answer.status == 200, answer.raw
        return str(answer.json["conversation_id"])

    def chat(self, uid: str, **query: Any) -> Chat:
        return Chat(self, uid, query)

    def read(self, uid: str) -> Any:
        answer = self.get(f"/api/conversations/{uid}")
        assert answer.status == 200, answer.raw
        return answer.json


@dataclass
class Chat:
    """One socket. `frames` is all it was sent."""

    api: Api
    uid: str
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    subprotocols: Sequence[str] | None = None
    shows_token: bool = True
    waits: bool = True

    def __post_init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self._line: ClientConnection | None = None

    @property
    def url(self) -> str:
        base = self.api.address.replace("http", "ws", 1)
        query = f"?{urlencode(self.query)}" if self.query else ""
        return f"{base}/api/chat/{quote(self.uid)}/ws{query}"

    def __enter__(self) -> Self:
        headers = dict(self.headers)
        if self.shows_token and self.api.token:
            headers["Authorization"] = f"Bearer {self.api.token}"
        self._open = connect(
            self.url,
            additional_headers=headers,
            subprotocols=self.subprotocols,  # type: ignore[arg-type]
            open_timeout=PATIENCE,
            max_size=None,
        )
        self._line = self._open.__enter__()
        if self.waits:
            self.until("ready")
        return self

    def __exit__(self, *_exc: object) -> None:
        self._open.__exit__(None, None, None)

    @property
    def subprotocol(self) -> str | None:
        assert self._line is not None
        return self._line.subprotocol

    def drop(self) -> None:
        """As a network would: no goodbye."""
        assert self._line is not None
        self._line.socket.close()

    def say(self, kind: str | None = None, /, **frame: Any) -> None:
        self.say_raw(json.dumps(frame if kind is None else {"type": kind, **frame}))

    def say_raw(self, text: str | bytes) -> None:
        assert self._line is not None
        self._line.send(text)

    def hear(self, timeout: float = PATIENCE) -> dict[str, Any]:
        assert self._line is not None
        frame: dict[str, Any] = json.loads(self._line.recv(timeout=timeout))
        self.frames.append(frame)
        return frame

    def until(self, *kinds: str) -> dict[str, Any]:
        """The next frame of one of these types, with all before it taken."""
        deadline = time.monotonic() + PATIENCE
        while True:
            left = deadline - time.monotonic()
            assert left > 0, f"no {kinds} among {[f['type'] for f in self.frames]}"
            frame = self.hear(left)
            if frame["type"] in kinds:
                return frame

    def until_closed(self) -> int:
        """The code it closes with."""
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                self.hear()
        return int(closed.value.rcvd.code)

    def nothing_for(self, seconds: float) -> bool:
        try:
            self.hear(seconds)
        except TimeoutError:
            return True
        return False

    def turn(self) -> dict[str, Any]:
        """Until the turn has come to its end; its terminal frame."""
        return self.until(*TERMINAL)

    def ask(self, text: str) -> dict[str, Any]:
        self.say("message", content=text)
        return self.turn()

    # --- what was heard -----------------------------------------------------------------------

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        return [frame for frame in self.frames if frame["type"] in kinds]

    @property
    def text(self) -> str:
        """As clients put it together: every `text_delta`, joined."""
        return "".join(frame["content"] for frame in self.of("text_delta"))
