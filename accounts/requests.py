"""The shape of a signed-in person's request, for the annotations of views and of the admin."""

from __future__ import annotations

from django.http import HttpRequest

from accounts.models import Organisation, User


class SignedInRequest(HttpRequest):
    """What a view behind `login_required` gets; never instantiated, only named in annotations."""

    user: User
    organisation: Organisation


def actor_of(request: HttpRequest) -> User:
    """Who uses the admin, which lets only people of ours in."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101 - the admin lets nobody else in
    return user
