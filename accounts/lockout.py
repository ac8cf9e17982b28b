"""Who tries to sign in, as axes counts it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest


def username_of(request: HttpRequest | None, credentials: dict[str, Any] | None) -> str | None:
    """The typed name or address in lower case, so that its spelling opens no second count."""
    typed = (credentials or {}).get("username") or (credentials or {}).get("email")
    if not typed and request is not None:
        typed = request.POST.get("login") or request.POST.get("username")
    return str(typed).strip().lower() if typed else None
