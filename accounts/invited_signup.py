"""The invitation a visitor carries through sign-up, kept in their session."""

from __future__ import annotations

from django.http import HttpRequest

from accounts.actions.invitations import find_open_invitation
from accounts.models import Invitation
from harness.errors import NotFound

_SESSION_KEY = "invitation"


def remember_invitation(request: HttpRequest, token: str) -> None:
    request.session[_SESSION_KEY] = token


def remembered_invitation(request: HttpRequest | None) -> tuple[Invitation, str] | None:
    """The invitation and its token while it is still open, else None."""
    token = request.session.get(_SESSION_KEY) if request is not None else None
    if not token:
        return None
    try:
        return find_open_invitation(token), token
    except NotFound:
        return None


def forget_invitation(request: HttpRequest) -> None:
    request.session.pop(_SESSION_KEY, None)
