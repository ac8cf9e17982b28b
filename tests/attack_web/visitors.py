"""How attackers speak to the site: as a browser with a session, as a program with a token, byte by byte."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Mapping
from typing import Any, Self

import httpx2
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

SESSION, CSRF = "agentsite_session", "agentsite_csrf"
CSRF_SECRET = "s" * 32
SECONDS = 20.0


class Visitor(httpx2.Client):
    """Follows no redirects. `session` is a key of a session, `token` an API token; neither: a stranger.

    `source` is the loopback address it calls from, so that one visitor's failures are not another's.
    """

    def __init__(
        self,
        address: str,
        *,
        session: str = "",
        token: str = "",
        source: str = "127.0.0.1",
        forge: bool = False,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        super().__init__(
            base_url=address,
            headers=headers,
            timeout=SECONDS,
            follow_redirects=False,
            trust_env=False,
            transport=httpx2.HTTPTransport(verify=False, local_address=source),
        )
        self.session = session
        if session:
            self.cookies.set(SESSION, session, domain="127.0.0.1")
        if not forge and not token:
            # A page of the site would have given it both.
            self.cookies.set(CSRF, CSRF_SECRET, domain="127.0.0.1")
            self.headers["X-CSRFToken"] = CSRF_SECRET

    def __enter__(self) -> Self:
        """It may have been used before."""
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def form(self, path: str, **values: Any) -> httpx2.Response:
        """Posts a form as a page of the site does, with the token that it would show now."""
        if CSRF in self.cookies:
            self.headers["X-CSRFToken"] = self.cookies[CSRF]
        return self.post(path, data=values)

    def says(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """The JSON of an answer, whatever its status; None for what is none."""
        answer = self.request(method, path, json=body, **options)
        try:
            return answer.json()
        except ValueError:
            return None


class Line:
    """A socket to the site; `with Line(…) as line`. Refused, `line.refused` says how."""

    def __init__(
        self,
        address: str,
        path: str,
        *,
        session: str = "",
        token: str = "",
        origin: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._url = address.replace("http://", "ws://") + path
        given = dict(headers or {})
        if session:
            given["Cookie"] = f"{SESSION}={session}"
        if token:
            given["Authorization"] = f"Bearer {token}"
        self._origin, self._headers = origin, given
        self._line: ClientConnection | None = None
        self.refused = ""
        self.closed: int | None = None
        self.said: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        try:
            self._line = connect(
                self._url,
                origin=self._origin,  # type: ignore[arg-type]
                additional_headers=self._headers,
                open_timeout=SECONDS,
                proxy=None,
            )
        except (InvalidHandshake, OSError) as problem:
            self.refused = str(problem)
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._line is not None:
            self._line.close()

    def send(self, frame: Any) -> None:
        assert self._line is not None
        try:
            self._line.send(frame if isinstance(frame, str | bytes) else json.dumps(frame))
        except ConnectionClosed as closed:
            self.closed = closed.rcvd.code if closed.rcvd else 1006

    def listen(self, seconds: float, until: str = "") -> str:
        """All that is said within so many seconds, or until something of it holds `until`."""
        heard: list[str] = []
        end = time.monotonic() + seconds
        while self._line is not None and (left := end - time.monotonic()) > 0:
            try:
                text = str(self._line.recv(timeout=left))
            except TimeoutError:
                break
            except ConnectionClosed as closed:
                self.closed = closed.rcvd.code if closed.rcvd else 1006
                break
            heard.append(text)
            if until and until in text:
                break
        return "\n".join(heard)


def raw(address: str, sent: bytes, *, seconds: float = SECONDS, source: str = "127.0.0.1") -> bytes:
    """What the server answers to exactly these bytes, until it hangs up or is silent for so long."""
    host, _, port = address.removeprefix("http://").partition(":")
    got = b""
    with socket.create_connection(
        (host, int(port)), timeout=seconds, source_address=(source, 0)
    ) as line:
        line.sendall(sent)
        end = time.monotonic() + seconds
        try:
            while (left := end - time.monotonic()) > 0:
                line.settimeout(left)
                some = line.recv(65_536)
                if not some:
                    break
                got += some
        except OSError:
            pass
    return got
