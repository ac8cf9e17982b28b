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
from wire.restwords import explained

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
    ("busy", 429, "All places for such work are taken; `Retry-After` says when to come back."),
    ("internal", 500, "A fault of this server; it is in its log under the request's id."),
    ("unavailable", 409, "What it needs is not installed on this server."),
)
"""What may be answered, with its status: the documentation and the schema are made of it."""


def handle(problem: Exception, context: dict[str, Any]) -> Response:
    """What DRF calls an exception handler; answers everything."""
    status, error, headers = _explained(problem, context.get("view"))
    set_rollback()
    if status == 500:
        logger.error("A request to %s failed", context["request"].path, exc_info=problem)
    return Response({"error": error}, status=status, headers=headers)


def _explained(problem: Exception, view: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    match problem:
        case AgentError():
            return _of_ours(problem)
        case exceptions.APIException() if problem.status_code < 500:
            return _of_rest(problem, view)
        case DjangoPermissionDenied():
            return _of_rest(exceptions.PermissionDenied(), view)
        case Http404():
            return _of_rest(exceptions.NotFound(), view)
        case RequestDataTooBig():
            return 413, body("too_large", _("The body is too long."), _("Send less.")), {}
        case TooManyFilesSent() | SuspiciousOperation():
            hint = _("Send a form as multipart/form-data with a few files.")
            return 422, body("invalid", _("The request is not well formed."), hint), {}
        case _:
            hint = _("Try again; if it keeps failing, tell whoever runs this server.")
            return 500, body("internal", _("The server could not do this."), hint), {}


_REST: tuple[tuple[type[exceptions.APIException], int, str], ...] = (
    (exceptions.NotAuthenticated, 401, "anonymous"),
    (exceptions.AuthenticationFailed, 401, "anonymous"),
    (exceptions.PermissionDenied, 403, "forbidden"),
    (exceptions.NotFound, 404, "not_found"),
    (exceptions.MethodNotAllowed, 405, "method_not_allowed"),
    (exceptions.NotAcceptable, 406, "not_acceptable"),
    (exceptions.UnsupportedMediaType, 415, "unsupported_media_type"),
    (exceptions.ParseError, 422, "bad_json"),
    (exceptions.APIException, 422, "invalid"),
)


def _of_rest(
    problem: exceptions.APIException, view: Any
) -> tuple[int, dict[str, Any], dict[str, str]]:
    status, code = next((s, code) for kind, s, code in _REST if isinstance(problem, kind))
    if status == 403 and "CSRF" in str(problem.detail):
        code = "csrf_failed"
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return status, body(code, *explained(problem, view)), headers


def _of_ours(problem: AgentError) -> tuple[int, dict[str, Any], dict[str, str]]:
    field = problem.field if isinstance(problem, Invalid) else ""
    hint = str(problem.hint)
    if not hint and isinstance(problem, NotFound):
        hint = _("Check the id; what is somebody else's is not found either.")
    error = body(problem.code, str(problem.message), hint, field)
    if isinstance(problem, Invalid) and problem.faults:
        error["faults"] = [body(f.code, f.rule, f.remedy, f.field) for f in problem.faults]
    headers = {"Retry-After": str(problem.retry_after)} if isinstance(problem, TooMany) else {}
    for kind, status in STATUSES:
        if isinstance(problem, kind):
            return status, error, headers
    return 500, error, headers


def body(code: str, message: str, hint: str = "", field: str = "") -> dict[str, Any]:
    return {"code": code, "message": message, "hint": hint, "field": field}
