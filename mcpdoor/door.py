"""`/mcp`: who asks, how often, from which page. The exchange itself is `exchange`'s.

One POST is one whole exchange; nothing is kept between two. A request that ends ends nothing that was
begun.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables

from accounts.api.authentication import presented_secret
from accounts.api.throttling import count_request
from harness.errors import Forbidden, Invalid, TooLarge, TooMany
from jobs.garbage import keeping_what_is_imported
from mcpclients.callers import caller_at_mcp
from mcpclients.metadata import challenge
from reading.foreignjson import Unreadable, read_json
from wire.givenjson import refusal_of
from wire.halves import Rest, in_halves

from .lookups import EVERY
from .tools import Principal

MOST_BYTES = 1_000_000
"""Of one message: the longest text that a tool takes, with room around it."""
MOST_PARTS = 5_000
"""Values and fields of it. It is read where everybody waits."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
"""As JSON-RPC has them."""
_CHANGING = frozenset({"tasks/update", "tasks/cancel"})
_READING = frozenset(each.name for each in EVERY if each.reads)


def begin(request: HttpRequest) -> HttpResponseBase | Rest:
    """In a thread: a refusal, or what answers one message of an MCP client."""
    if request.method != "POST":
        return _refusal(405, _("MCP messages are posted."), {"Allow": "POST"})
    try:
        found = _admitted(request)
    except TooMany as problem:
        return _refusal(429, problem.message, {"Retry-After": str(problem.retry_after)})
    except Forbidden as problem:
        return _refusal(403, problem.message, {})
    except TooLarge as problem:
        return _refusal(413, problem.message, {})
    except Invalid as problem:
        return _refusal(400, problem.message, {}, code=PARSE_ERROR)
    if found is None:
        return _unknown(request)
    # Whose share of the threads her next request takes.
    request.user = found[0].user
    return _answered(request, *found)


serve = csrf_exempt(in_halves(begin))


@sensitive_variables("secret")
def _admitted(request: HttpRequest) -> tuple[Principal, Any] | None:
    """Who asks, and what. Raises Invalid for what cannot be read, which counts as a change."""
    origin = request.headers.get("origin")
    if origin is not None and not _may_ask(origin, request):
        raise Forbidden(_("Pages of this site's own alone may ask here."))
    secret = presented_secret(request.headers)
    caller = caller_at_mcp(secret) if secret else None
    if caller is None:
        return None
    try:
        message = _read(request.body)
    except Invalid:
        count_request(caller.token, writes=True)
        raise
    count_request(caller.token, writes=_writes(message))
    base = f"{request.scheme}://{request.get_host()}"
    return Principal(caller.user, caller.organisation, caller, base), message


def _may_ask(origin: str, request: HttpRequest) -> bool:
    ours = f"{request.scheme}://{request.get_host()}"
    listed = settings.AGENTSITE_CORS_ORIGINS
    return (
        origin == ours
        or origin in settings.CSRF_TRUSTED_ORIGINS
        or origin in listed
        or ("*" in listed)
    )


def _read(body: bytes) -> Any:
    """Nothing else is handed on: the official package would read what is refused here, in whatever coding,
    and where everybody waits. Raises Invalid."""
    try:
        return read_json(body, limit=MOST_BYTES, parts=MOST_PARTS)
    except Unreadable as problem:
        raise refusal_of(problem) from None


def _writes(message: Any) -> bool:
    """Whether it counts as a change: what is no message does."""
    if not isinstance(message, dict):
        return True
    given = message.get("params")
    name = given.get("name") if isinstance(given, dict) else None
    method = message.get("method")
    return method in _CHANGING or (method == "tools/call" and name not in _READING)


def _answered(request: HttpRequest, who: Principal, message: Any) -> Rest:
    # Heavy, and of no use to most processes; imported for the first who asks, in her thread.
    with keeping_what_is_imported():
        from .exchange import Exchange  # noqa: PLC0415
    return Exchange(request, who, message).answer


def _unknown(request: HttpRequest) -> HttpResponse:
    """As RFC 6750 has it: who shows nothing hears no error code, who shows a wrong token does."""
    begun, more = 'Bearer realm="Agentsite"', challenge(request)
    if not presented_secret(request.headers):
        return _refusal(401, _("A token is needed."), {"WWW-Authenticate": f"{begun}{more}"})
    words = _("This token is not valid.")
    return _refusal(401, words, {"WWW-Authenticate": f'{begun}{more}, error="invalid_token"'})


def _refusal(
    status: int, words: str, headers: dict[str, str], *, code: int = INVALID_REQUEST
) -> HttpResponse:
    error = {"code": code, "message": str(words)}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return JsonResponse(body, status=status, headers=headers)
