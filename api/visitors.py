"""Who is at the other end of a program's socket, and whether they still may be.

A token is shown in a header, as a subprotocol or in the first frame; a ticket stands in the address;
a browser's session counts where the origin was checked (`agentsite.asgi`). Everything is asked anew
each time, because a socket outlives revocations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from accounts.api.authentication import Caller, caller_of_token, caller_with, presented_secret
from accounts.api.scopes import require_scope
from accounts.models import Organisation, TokenScope, User
from accounts.sessions import user_of_session
from conversations.actions.tickets import take_ticket

SUBPROTOCOL = "agentsite.v1"
"""What a client that shows its token as a subprotocol offers beside it, and what is chosen."""
TOKEN_SUBPROTOCOL = "agentsite.bearer."  # noqa: S105 - what stands before one


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person or program as they may act now. `caller` is None for a browser's session."""

    user: User
    caller: Caller | None = None

    @property
    def organisation(self) -> Organisation | None:
        """A token opens one organisation; a session all of the person's."""
        return self.caller.organisation if self.caller else None

    def require(self, scope: TokenScope) -> None:
        """Raises Forbidden."""
        if self.caller is not None:
            require_scope(self.caller, scope)


Look = Callable[[], Visitor | None]
"""Asks the tables who it is now; None: nobody any more. Equal ones give the same answer."""


@dataclass(frozen=True, slots=True)
class _WithSecret:
    secret: str = field(repr=False)

    def __call__(self) -> Visitor | None:
        return _visitor(caller_with(self.secret))


@dataclass(frozen=True, slots=True)
class _WithToken:
    uid: str

    def __call__(self) -> Visitor | None:
        return _visitor(caller_of_token(self.uid))


@dataclass(frozen=True, slots=True)
class _WithSession:
    key: str | None = field(repr=False)

    def __call__(self) -> Visitor | None:
        user = user_of_session(self.key)
        return Visitor(user) if user is not None else None


def with_secret(secret: str) -> Look:
    return _WithSecret(secret)


def with_session(session_key: str | None) -> Look:
    return _WithSession(session_key)


def with_ticket(ticket: str, conversation_uid: str) -> Look | None:
    """Uses the ticket up. None if it was none."""
    admission = take_ticket(ticket, conversation_uid=conversation_uid)
    if admission is None:
        return None
    if admission.token_uid:
        return _WithToken(admission.token_uid)
    return _WithSession(admission.session_key)


def _visitor(caller: Caller | None) -> Visitor | None:
    return Visitor(caller.user, caller) if caller is not None else None


def secret_in(scope: dict[str, Any]) -> str:
    """The token that came with the handshake, or ""."""
    headers = {
        name.decode("latin-1").title(): value.decode("latin-1")
        for name, value in scope.get("headers", ())
    }
    shown = presented_secret(_Headers(headers))
    if shown:
        return shown
    for offered in scope.get("subprotocols", ()):
        if offered.startswith(TOKEN_SUBPROTOCOL):
            return str(offered.removeprefix(TOKEN_SUBPROTOCOL))
    return ""


def in_address(scope: dict[str, Any], name: str) -> str | None:
    given = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    return given[name][-1] if name in given else None


class _Headers(dict[str, str]):
    """Looked up whatever the case, as Django's."""

    def get(self, name: str, default: Any = "") -> Any:
        return super().get(name.title(), default)
