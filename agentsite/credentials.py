"""Does a request show that it comes from somebody we know? Asked before its body is taken.

Only whether; who it is and what it may do, the views ask again with their own means.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.conf import settings
from django.views.decorators.debug import sensitive_variables
from rest_framework.exceptions import AuthenticationFailed

from accounts.api.authentication import presented_secret
from accounts.sessions import user_of_session
from agentsite.cookies import cookies_in
from mcpclients.callers import caller_at_mcp
from schedules.mailhook import shows_secret
from v1.workers import worker_with

Headers = Iterable[tuple[bytes, bytes]]

_TELLING = {b"authorization": "Authorization", b"x-api-key": "x-api-key", b"cookie": "Cookie"}


@sensitive_variables()
def shows_credentials(headers: Headers) -> bool:
    """Whether there is anything to look up. Names in lower case."""
    return any(name in _TELLING for name, _value in headers)


@sensitive_variables()
def is_known(headers: Headers) -> bool:
    """By a valid session, API token or worker's key, or the secret of mail services. Reads tables; names in
    lower case."""
    given = {_TELLING[name]: value.decode("latin-1") for name, value in headers if name in _TELLING}
    if shows_secret(given.get("Authorization", "")):
        return True
    secret = presented_secret(given)
    if secret:
        try:
            return worker_with(secret) is not None or caller_at_mcp(secret) is not None
        except AuthenticationFailed:
            return False
    return user_of_session(cookies_in(headers).get(settings.SESSION_COOKIE_NAME)) is not None
