"""A refusal that no view handled becomes an answer with its status, its reason and its remedy.

A page for a browser, a notice for htmx, an object for a script that asked for JSON.
"""

from __future__ import annotations

from collections.abc import Callable

from django.core.paginator import InvalidPage
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

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

_STATUSES: list[tuple[type[AgentError], int]] = [
    (NotFound, 404),
    (Forbidden, 403),
    (Conflict, 409),
    (TooLarge, 413),
    (Invalid, 400),
    (TooMany, 429),
    (Declined, 400),
    (LimitReached, 409),
]


class DeclinedMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, InvalidPage):  # of the admin's search, which asks for any page
            error = NotFound(_("There is no such page of results."))
        return answer_to(request, error) if isinstance(error, AgentError) else None


def answer_to(request: HttpRequest, error: AgentError) -> HttpResponse | None:
    """None for an error that is nobody's refusal."""
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            response = _answer(request, error, status)
            if isinstance(error, TooMany):
                response["Retry-After"] = str(error.retry_after)
            return response
    return None


def _answer(request: HttpRequest, error: AgentError, status: int) -> HttpResponse:
    if getattr(request, "htmx", False):
        response = render(request, "declined_notice.html", {"error": error}, status=status)
        # Where page.js and base.html keep notices, wherever the answer was meant to go.
        response["HX-Retarget"] = "#notices"
        response["HX-Reswap"] = "beforeend"
        return response
    if request.get_preferred_type(["text/html", "application/json"]) == "application/json":
        body = {"code": error.code, "message": error.message, "hint": error.hint}
        return JsonResponse({"error": body}, status=status)
    return render(request, "declined.html", {"error": error, "status": status}, status=status)
