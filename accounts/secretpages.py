"""Pages of staff on which a secret is made and shown, in the administration and beside it.

A secret outlives the session, so a session that somebody took is not enough: whoever makes one types the
password again, if that was not just done, as on the page of tokens.
"""

from __future__ import annotations

from typing import Any

from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from django.http import HttpRequest, HttpResponse


def require_recent(request: HttpRequest) -> None:
    """Of a form that was sent: it goes on where it was stopped, once the password was typed."""
    if request.method == "POST":
        raise_if_reauthentication_required(request, app="")


class MakesSecrets:
    """Beside `ModelAdmin`, whose form for a new row makes a secret."""

    def add_view(self: Any, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        require_recent(request)
        answer: HttpResponse = super().add_view(request, *args, **kwargs)  # type: ignore[misc]
        return answer
