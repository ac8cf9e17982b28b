"""The one error shape of `/v1`: type, message, details with our stable code, and the request's id.

Which errors there are is `harness.errors`'; here is only what they look like on this wire.
"""

from __future__ import annotations

import logging
from typing import Any, Literal

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404
from django.utils.translation import gettext as _
from pydantic import BaseModel, ConfigDict
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from accounts.api.request_ids import current_request_id
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

_KINDS: list[tuple[type[AgentError], int, str]] = [
    (NotFound, 404, "not_found_error"),
    (Forbidden, 403, "permission_error"),
    (Conflict, 409, "conflict_error"),
    (TooLarge, 413, "request_too_large"),
    (Invalid, 400, "invalid_request_error"),
    (TooMany, 429, "rate_limit_error"),
    (LimitReached, 409, "conflict_error"),
    (Declined, 400, "invalid_request_error"),
]
_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


class V1Fault(BaseModel):
    code: str
    field: str
    message: str
    hint: str


class V1ErrorDetails(BaseModel):
    model_config = ConfigDict(extra="allow")

    error_code: str
    """Stable; the table of codes is in docs/api.md."""
    field: str | None = None
    hint: str | None = None
    faults: list[V1Fault] | None = None
    """Of a body: all that is wrong with it, up to ten; the first is the one above."""


class V1Error(BaseModel):
    type: str
    message: str
    details: V1ErrorDetails | None = None


class V1ErrorEnvelope(BaseModel):
    """Every answer that is not 2xx has this shape."""

    type: Literal["error"] = "error"
    error: V1Error
    request_id: str


def envelope(kind: str, message: str, **details: Any) -> dict[str, Any]:
    """The body of an error; details that say nothing are left out."""
    given = {name: value for name, value in details.items() if value}
    error = {"type": kind, "message": message, "details": given or None}
    return {"type": "error", "error": error, "request_id": current_request_id()}


def answer_to(error: AgentError, *, hint: str = "") -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers of a refusal. `hint` is told where the error brings none."""
    hint = str(error.hint) or hint
    status, kind = next(
        ((status, kind) for cls, status, kind in _KINDS if isinstance(error, cls)),
        (500, "api_error"),
    )
    field = error.field if isinstance(error, Invalid) else ""
    words = f"{field}: {error.message}" if field else str(error.message)
    found = error.faults if isinstance(error, Invalid) else ()
    body = envelope(
        kind,
        f"{words} {hint}".strip(),
        error_code=error.code,
        field=field,
        hint=hint,
        faults=[
            V1Fault(
                code=each.code, field=each.field, message=each.rule, hint=each.remedy
            ).model_dump()
            for each in found
        ],
    )
    headers = {}
    if status == 409:
        # Clients would send it three times; the answer would be the same.
        headers["x-should-retry"] = "false"
    if isinstance(error, TooMany):
        headers["retry-after"] = str(error.retry_after)
    return status, body, headers


def _usual_hint(error: AgentError, context: Any) -> str:
    """What to do where nothing is found, which may be somebody else's as well."""
    if not isinstance(error, NotFound):
        return ""
    request = (context or {}).get("request")
    parts = request.path.split("/") if request is not None else []
    if len(parts) < 4 or parts[1] != "v1":
        return _("Check the id; what is somebody else's is not found either.")
    return _("GET /v1/%(collection)s lists what this token may see.") % {"collection": parts[2]}


def handle(error: Exception, context: Any) -> Response:
    """DRF's `exception_handler` for this door: whatever happens, the shape is the same."""
    set_rollback()
    match error:
        case AgentError():
            status, body, headers = answer_to(error, hint=_usual_hint(error, context))
            return Response(body, status=status, headers=headers)
        case Http404():
            return handle(NotFound(_("There is nothing at this address.")), context)
        case RequestDataTooBig():
            too_large = TooLarge(_("The request is too large."), hint=_("Send less."))
            return handle(too_large, context)
        case SuspiciousOperation():
            # Django's words: among them, that a form has too many fields or files.
            hint = _("Send a form as multipart/form-data with a few files.")
            return handle(Invalid(_("The request is not well formed."), hint=hint), context)
        case exceptions.APIException():
            status = error.status_code
            kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
            code = error.get_codes()
            message, hint = explained(error, (context or {}).get("view"))
            body = envelope(
                kind,
                f"{message} {hint}",
                error_code=code if isinstance(code, str) else "invalid",
                hint=hint,
            )
            headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
            return Response(body, status=status, headers=headers)
        case OperationalError():
            logger.warning("The database did not answer a request in time", exc_info=error)
            body = envelope("overloaded_error", _("The server is busy. Try again."))
            return Response(body, status=529, headers={"retry-after": "1"})
    logger.error("A request failed", exc_info=error)
    words = _("The server failed at this. Its operator finds why under the request's id.")
    return Response(envelope("api_error", words), status=500)
