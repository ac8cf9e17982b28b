"""The one shape of an error at `/api`: `{"error": {"code", "message", "hint", "field"}}`.

Codes are stable; docs/api-chat.md lists them. Whatever was raised becomes one of them here, so that no
view writes an error of its own.
"""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import PermissionDenied as DjangoPermissionDenied
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation, TooManyFilesSent
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from harness.errors import (
    AgentError,
    Conflict,
    Declined,
    Forbidden,
    Invalid,
    LimitReached,
    NotFound,
    TooLarge,
    TooMany,
)

logger = logging.getLogger(__name__)

STATUSES: tuple[tuple[type[AgentError], int], ...] = (
    (NotFound, 404),
    (Forbidden, 403),
    (Conflict, 409),
    (TooLarge, 413),
    (Invalid, 422),
    (TooMany, 429),
    (LimitReached, 409),
    (Declined, 400),
)

CODES: tuple[tuple[str, int, str], ...] = (
    ("anonymous", 401, "No token, or none that is valid; or no session."),
    ("forbidden", 403, "The token lacks a scope, or the path is reserved or leads outside."),
    ("csrf_failed", 403, "A browser's session without its CSRF token."),
    ("not_found", 404, "It does not exist, or it is somebody else's."),
    ("method_not_allowed", 405, "The address does not take this method."),
    ("not_acceptable", 406, "Only JSON is answered."),
    ("conflict", 409, "It changed meanwhile, is at work, or was answered before."),
    ("limit_reached", 409, "A quota or budget of the organisation is used up."),
    ("too_large", 413, "Longer than the limit that the message names."),
    ("unsupported_media_type", 415, "The body is not of the type the address takes."),
    ("invalid", 422, "`field` breaks the rule in `message`; `hint` says what to do."),
    ("bad_json", 422, "The body is no JSON object."),
    ("rate_limited_by_site", 429, "Too often; `Retry-After` says how long to wait."),
    ("internal", 500, "A fault of this server; it is in its log under the request's id."),
    ("unavailable", 409, "What it needs is not installed on this server."),
)
"""What may be answered, with its status: the documentation and the schema are made of it."""


def handle(problem: Exception, context: dict[str, Any]) -> Response:
    """What DRF calls an exception handler; answers everything."""
    status, error, headers = _explained(problem)
    set_rollback()
    if status == 500:
        logger.error("A request to %s failed", context["request"].path, exc_info=problem)
    return Response({"error": error}, status=status, headers=headers)


def _explained(problem: Exception) -> tuple[int, dict[str, Any], dict[str, str]]:
    match problem:
        case AgentError():
            return _of_ours(problem)
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            hint = _("Send a token: `Authorization: Bearer …` or `x-api-key: …`.")
            headers = {"WWW-Authenticate": "Bearer"}
            return 401, body("anonymous", str(problem.detail), hint), headers
        case exceptions.PermissionDenied():
            code = "csrf_failed" if "CSRF" in str(problem.detail) else "forbidden"
            return 403, body(code, str(problem.detail)), {}
        case DjangoPermissionDenied():
            return 403, body("forbidden", _("You may not do this.")), {}
        case Http404() | exceptions.NotFound():
            return 404, body("not_found", _("There is nothing here.")), {}
        case exceptions.MethodNotAllowed():
            return 405, body("method_not_allowed", str(problem.detail)), {}
        case exceptions.NotAcceptable():
            hint = _("Accept application/json.")
            return 406, body("not_acceptable", str(problem.detail), hint), {}
        case exceptions.UnsupportedMediaType():
            return 415, body("unsupported_media_type", str(problem.detail)), {}
        case exceptions.ParseError():
            hint = _("Send one JSON object, or a correct multipart form.")
            return 422, body("bad_json", str(problem.detail), hint), {}
        case exceptions.ValidationError():
            field, message = _first(problem.detail)
            return 422, body("invalid", message, field=field), {}
        case RequestDataTooBig():
            return 413, body("too_large", _("The body is too long.")), {}
        case TooManyFilesSent() | SuspiciousOperation():
            return 422, body("invalid", _("The request is not well formed.")), {}
        case _:
            hint = _("Try again; if it keeps failing, tell whoever runs this server.")
            return 500, body("internal", _("The server could not do this."), hint), {}


def _of_ours(problem: AgentError) -> tuple[int, dict[str, Any], dict[str, str]]:
    field = problem.field if isinstance(problem, Invalid) else ""
    error = body(problem.code, str(problem.message), str(problem.hint), field)
    headers = {"Retry-After": str(problem.retry_after)} if isinstance(problem, TooMany) else {}
    for kind, status in STATUSES:
        if isinstance(problem, kind):
            return status, error, headers
    return 500, error, headers


def body(code: str, message: str, hint: str = "", field: str = "") -> dict[str, Any]:
    return {"code": code, "message": message, "hint": hint, "field": field}


def _first(detail: Any, field: str = "") -> tuple[str, str]:
    """The first of the things that are wrong, and where."""
    if isinstance(detail, dict) and detail:
        name, inner = next(iter(detail.items()))
        below = "" if name == "non_field_errors" else str(name)
        return _first(inner, f"{field}.{below}".strip("."))
    if isinstance(detail, list) and detail:
        return _first(next((item for item in detail if item), ""), field)
    return field, str(detail)
