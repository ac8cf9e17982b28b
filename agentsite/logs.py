"""Log lines: readable for people, or JSON for machines, each with the ids of what it is about.

The ids travel in context variables: a request's is bound here, a run's by the run. Nothing logs what
people or models write; what looks like a secret in somebody else's message is masked.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import structlog

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

JSON = "json"

_SENSIBLE_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}")
_SECRETS = re.compile(
    r"(?i)\b(sk-[a-z0-9_-]{6})[a-z0-9_-]+|(bearer\s+\S{4})\S+|(://[^/\s:@]*:)[^@\s/]+(?=@)"
    r"|(/(?:setup|invitations|shared|notifications/stop|password/reset/key|confirm-email)/)[^/\s\"']{8,}"
)
"""Keys of model services, bearer tokens, passwords in addresses, the one-time tokens of links: their
beginning is kept."""


def mask(text: str) -> str:
    return _SECRETS.sub(lambda found: f"{found[1] or found[2] or found[3] or found[4]}…", text)


def _masked(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> Any:
    for name, value in line.items():
        if isinstance(value, str):
            line[name] = mask(value)
    return line


def configuration(*, level: str, form: str) -> dict[str, Any]:
    """Django's LOGGING. `form` is `json`, or anything else for readable lines."""
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(
            fmt="iso" if form == JSON else "%H:%M:%S", utc=form == JSON
        ),
        structlog.stdlib.PositionalArgumentsFormatter(),
    ]
    last: list[Any] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if form == JSON:
        last += [structlog.processors.format_exc_info, _masked]
        last += [structlog.processors.JSONRenderer(ensure_ascii=False)]
    else:
        last += [structlog.processors.format_exc_info, _masked]
        last += [structlog.dev.ConsoleRenderer(colors=False, pad_event_to=0, sort_keys=False)]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": last,
            },
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            "django.server": {"handlers": [], "level": "INFO", "propagate": True},
            "django.channels.server": {"level": "WARNING"},
            "mcp": {"level": "WARNING"},
            # It logs what a server sent that it could not read; runs tell of it.
            "mcp.client": {"level": "CRITICAL"},
            "daphne": {"level": "WARNING"},
            "uvicorn": {"handlers": [], "level": "INFO", "propagate": True},
            "uvicorn.access": {"level": "WARNING"},
            "uvicorn.error": {"level": "WARNING"},
            "celery": {"handlers": [], "level": "INFO", "propagate": True},
            # One line for each message that comes: said by the job itself, where it matters.
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "celery.beat": {"level": "WARNING"},
            "axes": {"level": "WARNING"},
            "httpx2": {"level": "WARNING"},
            # It tells of every code and token that it was shown or gives.
            "oauthlib": {"level": "WARNING"},
        },
    }


class RequestIds:
    """ASGI: binds the request's id for its log lines, and says it in the answer.

    A proxy's X-Request-ID is kept if it looks like one.
    """

    def __init__(self, app: App) -> None:
        self.inner = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"x-request-id", b"")
        request_id = given if _SENSIBLE_ID.fullmatch(given) else secrets.token_hex(8).encode()

        async def send_with_id(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), (b"x-request-id", request_id)]
                message = {**message, "headers": headers}
            await send(message)

        with structlog.contextvars.bound_contextvars(request=request_id.decode()):
            # A socket has no answer to say it in, and many frames.
            answer = send_with_id if scope["type"] == "http" else send
            await self.inner(scope, receive, answer)
