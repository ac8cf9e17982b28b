"""/healthz, /readyz and /metrics: answered before Django, so that no host name, session or middleware
stands between a probe and the process. A process that serves no pages answers them by `probeport`.

`/metrics` needs the bearer token of AGENTSITE_METRICS_TOKEN; to everybody else it does not exist. With
it, `/readyz` tells what was looked at; without, one word and its status.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from dataclasses import dataclass

from django.conf import settings

from agentsite.logs import App, Receive, Scope, Send
from agentsite.metrics import exposition
from agentsite.readiness import OK, commands_in_words, readiness, sandboxes_in_words
from jobs.engine import engine

logger = logging.getLogger(__name__)

HEALTH, READINESS, METRICS = "/healthz", "/readyz", "/metrics"
PATHS = frozenset({HEALTH, READINESS, METRICS})

PATIENCE = 10.0
"""Seconds after which even the answer "no" is overdue."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    kind: str
    body: bytes


ALIVE = Answer(200, "text/plain; charset=utf-8", b"ok\n")
ABSENT = Answer(404, "text/plain; charset=utf-8", b"Not found\n")
SLOW = Answer(503, "application/json", b'{"status": "unavailable"}')


def answer(path: str, *, in_full: bool = False) -> Answer:
    """For one of `PATHS`. Reads the database, except for `/healthz`.

    `/readyz` is `ready`, `degraded` (it serves, but runs no commands) or, with 503, `unavailable`.
    """
    if path == HEALTH:
        return ALIVE
    if path == READINESS:
        checks = readiness()
        ready = all(word == OK for word in checks.values())
        commands = commands_in_words()
        serving = "degraded" if commands not in ("", OK) else "ready"
        body: dict[str, object] = {"status": serving if ready else "unavailable"}
        if in_full:
            body["checks"] = checks
            if commands:
                body["commands"] = commands
            if sandboxes := sandboxes_in_words():
                body["sandboxes"] = sandboxes
        _log_changes(checks)
        return Answer(200 if ready else 503, "application/json", json.dumps(body).encode())
    return Answer(200, "text/plain; version=0.0.4; charset=utf-8", exposition())


_logged: dict[str, str] = {}


def _log_changes(checks: dict[str, str]) -> None:
    """In the log, where those look who have no token: what is wrong, once each time it becomes so."""
    for name, word in checks.items():
        if word != _logged.get(name, OK):
            logger.warning("readiness: %s is %s", name, word)
        _logged[name] = word


def is_operator(authorization: str) -> bool:
    token = settings.AGENTSITE_METRICS_TOKEN
    given = authorization.removeprefix("Bearer ")
    return bool(token) and secrets.compare_digest(given.encode(), token.encode())


def may_read(path: str, authorization: str) -> bool:
    return path != METRICS or is_operator(authorization)


class Probes:
    """ASGI: answers probes, passes everything else on."""

    def __init__(self, app: App) -> None:
        self.inner = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path not in PATHS:
            await self.inner(scope, receive, send)
            return
        found = await self._answer(path, scope) if scope["method"] in ("GET", "HEAD") else ABSENT
        headers = [
            (b"content-type", found.kind.encode()),
            (b"content-length", str(len(found.body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": found.status, "headers": headers})
        await send({"type": "http.response.body", "body": found.body})

    async def _answer(self, path: str, scope: Scope) -> Answer:
        given = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
        if not may_read(path, given):
            return ABSENT
        if path == HEALTH:
            return ALIVE
        try:
            async with asyncio.timeout(PATIENCE):
                return await engine.in_database(answer, path, in_full=is_operator(given))
        except TimeoutError:
            return SLOW
