"""Whose a request is, before anybody has asked a table: told by what earlier answers found out about the
credentials it shows. It says whose share of the threads a request takes, and lets nobody in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils.functional import LazyObject

from accounts.models import User
from accounts.persons import whose_place
from agentsite.cookies import cookies_in
from agentsite.logs import Scope

REMEMBERED = 10_000
"""Credentials in one process; of more, those that were shown longest ago are forgotten."""


class Callers:
    """Used on one event loop."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, int] = OrderedDict()

    def key_of(self, scope: Scope) -> Hashable:
        """The person's whose credentials are known; of all others one for each address."""
        shown = _digest(scope)
        person = self._known.get(shown)
        if person is not None:
            self._known.move_to_end(shown)
            return person
        client: Any = scope.get("client")
        return f"address {client[0]}" if client else "nowhere"

    def learn(self, scope: Scope, person: int) -> None:
        """These credentials were that person's."""
        self._known[_digest(scope)] = person
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)


def person_of(request: HttpRequest) -> int | None:
    """Who was found to ask, where somebody looked; asks no table."""
    user: Any = getattr(request, "user", None)
    if isinstance(user, LazyObject):
        user = getattr(request, "_cached_user", None)
    return whose_place(user) if isinstance(user, User) else None


def _digest(scope: Scope) -> bytes:
    shown = sha256()
    for name, value in scope["headers"]:
        if name in {b"authorization", b"x-api-key"}:
            shown.update(b"%s %d %s\n" % (name, len(value), value))
    given = cookies_in(scope["headers"])
    shown.update(given.get(settings.SESSION_COOKIE_NAME, "").encode("latin-1"))
    return shown.digest()
