"""Browsers in which a person has signed in before, known by a signed cookie.

It opens nothing: the password is asked all the same. It only sets the browser apart from strangers who
try the same account (`accounts.lockout`).
"""

from __future__ import annotations

import secrets

from django.conf import settings
from django.core import signing
from django.http import HttpRequest, HttpResponseBase

COOKIE = "agentsite_device"
_SALT = "accounts.devices"
DAYS = 180
_KEPT = 8
"""People that one browser is known for."""
_RESET = "accounts.reset_by"
"""In the session: whose password was just reset by a mail, and so by who owns the mailbox."""


def device_of(request: HttpRequest | None, account: str | None) -> str:
    """The device's own word if it is known for this account (`accounts.lockout`), else "".

    Of an account that may be one of several people's, for all of them: whoever is one of them does not
    try the others' passwords with a count of his own.
    """
    if request is None or not account or not account.startswith("account:"):
        return ""
    known = _known(request)
    people = account.removeprefix("account:").split(",")
    if known.keys() >= set(people):
        return known[people[0]]
    session = getattr(request, "session", None)
    reset = session.get(_RESET) if session is not None else None
    if reset and [str(reset[0])] == people:
        return str(reset[1])
    return ""


def remember_device(request: HttpRequest, response: HttpResponseBase, user_pk: int) -> None:
    """After a sign-in that succeeded: a fresh word, so that a copied cookie is soon an old one."""
    known = {pk: word for pk, word in _known(request).items() if pk != str(user_pk)}
    known[str(user_pk)] = secrets.token_urlsafe(9)
    while len(known) > _KEPT:
        known.pop(next(iter(known)))
    response.set_cookie(
        COOKIE,
        signing.dumps(known, salt=_SALT, compress=True),
        max_age=DAYS * 86400,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def remember_reset(request: HttpRequest, user_pk: int) -> None:
    request.session[_RESET] = [user_pk, secrets.token_urlsafe(9)]


def _known(request: HttpRequest) -> dict[str, str]:
    try:
        known = signing.loads(request.COOKIES.get(COOKIE, ""), salt=_SALT, max_age=DAYS * 86400)
    except signing.BadSignature:
        return {}
    return known if isinstance(known, dict) else {}
