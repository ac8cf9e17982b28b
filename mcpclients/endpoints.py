"""The addresses that clients themselves ask: what there is to know, registration, tokens and their end.

Nobody is signed in here and no cookie counts; a body is short, and an address asks so often at most.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_POST, require_safe

from harness.errors import Invalid, LimitReached, TooMany
from reading.foreignjson import Unreadable, read_json

from . import assertions, documents, exchange, rates
from .actions.clients import register_client
from .metadata import authorisation_server, issuer_of, protected_resource, resource_of

MOST_BYTES = 16 * 1024
MOST_PARTS = 200

View = Callable[[HttpRequest], HttpResponse]


def _while_on(view: View) -> View:
    @functools.wraps(view)
    def wrapped(request: HttpRequest) -> HttpResponse:
        if not settings.AGENTSITE_MCP_OAUTH:
            raise Http404
        return view(request)

    return wrapped


@require_safe
@_while_on
def show_resource(request: HttpRequest) -> HttpResponse:
    return JsonResponse(protected_resource(request))


@require_safe
@_while_on
def show_server(request: HttpRequest) -> HttpResponse:
    return JsonResponse(authorisation_server(request))


@csrf_exempt
@require_POST
@never_cache
@_while_on
def token(request: HttpRequest) -> HttpResponse:
    resource, places = resource_of(request), _places(request)
    return _answered(
        request, functools.partial(exchange.exchange, resource=resource, places=places)
    )


@csrf_exempt
@require_POST
@never_cache
@_while_on
def revoke(request: HttpRequest) -> HttpResponse:
    return _answered(request, functools.partial(exchange.revoke, places=_places(request)))


@csrf_exempt
@require_POST
@never_cache
@_while_on
def register(request: HttpRequest) -> HttpResponse:
    if not settings.AGENTSITE_MCP_REGISTRATION:
        raise Http404
    try:
        rates.count(
            "register",
            rates.address_of(request),
            most=settings.AGENTSITE_MCP_REGISTRATIONS_PER_HOUR,
            seconds=rates.HOUR,
        )
        said = read_json(request.body, limit=MOST_BYTES, parts=MOST_PARTS)
        if not isinstance(said, dict):
            raise Invalid("A JSON object is needed.")
        made = register_client(said=said)
    except TooMany as problem:
        return _too_many(problem)
    except LimitReached as problem:
        return _refused(429, "temporarily_unavailable", problem.message)
    except Unreadable as problem:
        return _refused(400, "invalid_client_metadata", f"This is no JSON: {problem}.")
    except Invalid as problem:
        kind = "redirect_uri" if problem.field == "redirect_uris" else "client_metadata"
        return _refused(400, f"invalid_{kind}", problem.message)
    return JsonResponse(
        {
            "client_id": made.client_id,
            "client_id_issued_at": int(made.created_at.timestamp()),
            "client_name": made.name,
            "redirect_uris": made.redirect_uris,
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        },
        status=201,
    )


@sensitive_variables()
def _answered(request: HttpRequest, ask: Callable[[str], exchange.Answer]) -> HttpResponse:
    try:
        rates.count(
            "token",
            rates.address_of(request),
            most=settings.AGENTSITE_MCP_EXCHANGES_PER_MINUTE,
            seconds=rates.MINUTE,
        )
    except TooMany as problem:
        return _too_many(problem)
    # No database keeps a NUL, and none of ours would be looked up.
    if len(request.body) > MOST_BYTES or not request.body.isascii() or b"%00" in request.body:
        return _refused(400, "invalid_request", "The body is too long, or no form.")
    body = request.body.decode("ascii")
    try:
        _read_new_keys(body)
    except ValueError:
        return _refused(400, "invalid_request", "The body has too many fields.")
    headers, text, status = ask(body)
    return HttpResponse(text, status=status, headers={**_JSON, **headers})


@sensitive_variables()
def _read_new_keys(body: str) -> None:
    """Of a client that signs with one that is not known yet. Raises ValueError for too many fields."""
    signed = parse_qs(body, max_num_fields=MOST_PARTS).get("client_assertion", [""])[0]
    if signed and (told := assertions.told_by(signed)).client_id:
        documents.read_again_for(told.client_id, told.key_id)


def _places(request: HttpRequest) -> list[str]:
    """For which a client may have signed who it is: the server, or the address that takes that first."""
    issuer = issuer_of(request)
    return [issuer, f"{issuer}{reverse('mcpclients:token')}"]


_JSON = {"Content-Type": "application/json"}


def _too_many(problem: TooMany) -> HttpResponse:
    answer = _refused(429, "temporarily_unavailable", problem.message)
    answer["Retry-After"] = str(problem.retry_after)
    return answer


def _refused(status: int, error: str, words: str) -> HttpResponse:
    said: dict[str, Any] = {"error": error, "error_description": words}
    return JsonResponse(said, status=status)
