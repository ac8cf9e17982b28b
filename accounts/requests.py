"""The shape of a signed-in person's request, for the annotations of views."""

from __future__ import annotations

from django.http import HttpRequest

from accounts.models import Organisation, User


class SignedInRequest(HttpRequest):
    """What a view behind `login_required` gets; never instantiated, only named in annotations."""

    user: User
    organisation: Organisation
