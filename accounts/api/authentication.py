"""Whom a token speaks for. `Authorization: Bearer <secret>` and `x-api-key: <secret>` are the same.

DRF views get it through `TokenAuthentication`; sockets and streams call `caller_with`. What the
token may be used for is `scopes`', how often is `throttling`'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from knox.crypto import hash_token
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed

from accounts.models import ApiToken, Organisation, User
from accounts.models.api_token import MANAGING_SCOPES
from jobs.prepared import Given, Prepared

SECRET_LENGTH = 200
"""Longer strings are not looked up; ours have 68 characters."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who acts: a person or service account, in the token's organisation and no other."""

    user: User
    organisation: Organisation
    token: ApiToken


@sensitive_variables("secret")
def caller_with(secret: str) -> Caller | None:
    """Whose token this is, or None: unknown, revoked, expired, or its person left or was shut out.

    Reads tables; nothing is written. The user carries the powers of staff only with a scope that
    manages something.
    """
    if not secret or len(secret) > SECRET_LENGTH or not secret.isascii():
        return None
    return _caller(_SHOWN.first(digest=hash_token(secret), now=timezone.now()))


def caller_of_token(uid: str) -> Caller | None:
    """The same for a token that was shown before, for what outlives the request that showed it, or one whose
    client showed another secret, where that counts (`mcpclients`)."""
    return _caller(_NAMED.first(uid=uid, now=timezone.now()))


def _in_force(given: Given) -> QuerySet[ApiToken]:
    """Tokens that open something now: of people who may come in, where they still belong."""
    return (
        ApiToken.objects.valid_at(given.now)
        .select_related("user", "organisation")
        .filter(user__is_active=True)
        .filter(organisation__memberships__user_id=F("user_id"))
    )


_SHOWN = Prepared(lambda given: _in_force(given).filter(digest=given.digest, audience=""))
_NAMED = Prepared(lambda given: _in_force(given).filter(uid=given.uid))


def _caller(token: ApiToken | None) -> Caller | None:
    if token is None:
        return None
    user: User = token.user
    if not MANAGING_SCOPES.intersection(token.scopes):
        # In memory alone: a token for conversations opens nothing else, whoever's it is.
        user.is_staff = user.is_superuser = False
    return Caller(user=user, organisation=token.organisation, token=token)


@sensitive_variables()
def presented_secret(headers: Any) -> str:
    """The secret a request shows, or "". Invalid credentials are those of neither form."""
    scheme, _space, value = headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return str(value).strip()
    return str(headers.get("x-api-key", "")).strip()


class TokenAuthentication(BaseAuthentication):
    """`request.user` is the actor, `request.auth` the token, `request.caller` both and where."""

    @sensitive_variables("secret")
    def authenticate(self, request: Any) -> tuple[User, ApiToken] | None:
        secret = presented_secret(request.headers)
        if not secret:
            return None
        caller = caller_with(secret)
        if caller is None:
            raise AuthenticationFailed(_("This token is not valid."))
        request.caller = caller
        return caller.user, caller.token

    def authenticate_header(self, request: Any) -> str:
        return "Bearer"


def caller_of(request: Any) -> Caller:
    """The caller of a DRF request that was let in."""
    caller = getattr(request, "caller", None)
    if not isinstance(caller, Caller):
        raise AuthenticationFailed(_("A token is needed."))
    return caller


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = TokenAuthentication
    name = ["bearer", "apiKey"]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        return [
            {"type": "http", "scheme": "bearer"},
            {"type": "apiKey", "in": "header", "name": "x-api-key"},
        ]
