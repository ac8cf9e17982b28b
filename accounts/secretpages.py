"""Pages of staff on which a secret is made and shown, or it is said how somebody signs in, in the
administration and beside it.

That outlives the session, so a session that somebody took is not enough: the password is typed again, if
that was not just done, as on the page of tokens.
"""

from __future__ import annotations

from typing import Any

from allauth.account.internal.flows.reauthentication import (
    is_reauthentication_required,
    raise_if_reauthentication_required,
)
from allauth.core.exceptions import ReauthenticationRequired
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect


def require_recent(request: HttpRequest) -> None:
    """Of a form that was sent: it goes on where it was stopped, once the password was typed."""
    if request.method == "POST":
        raise_if_reauthentication_required(request, app="")


def recent_before(request: HttpRequest) -> HttpResponse | None:
    """Of a page on which a password is given to somebody: asked before it is shown. A form that was sent too
    late is not kept, for a password would stand in the session; the page is shown anew instead."""
    if not is_reauthentication_required(request, app=""):
        return None
    if request.method == "POST":
        return redirect(request.get_full_path())
    raise ReauthenticationRequired


class MakesSecrets:
    """Beside `ModelAdmin`, whose form for a new row makes a secret."""

    def add_view(self: Any, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        require_recent(request)
        answer: HttpResponse = super().add_view(request, *args, **kwargs)  # type: ignore[misc]
        return answer
