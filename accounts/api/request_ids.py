"""The id of the request being answered: the one its log lines carry."""

from __future__ import annotations

import secrets

import structlog


def current_request_id() -> str:
    """What the ASGI door bound for this request; a fresh one where there is no such door."""
    bound = structlog.contextvars.get_contextvars().get("request")
    return f"req_{bound or secrets.token_hex(8)}"
