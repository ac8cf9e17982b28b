"""What middleware sees of an answer that a coroutine has yet to give (`agentsite.pages` has it given)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils import translation
from django.utils.log import log_response

from wire.halves import First


class Promise(HttpResponse):
    """What middleware sees of an answer that a coroutine has yet to give."""

    def __init__(
        self, request: HttpRequest, view: Callable[[], Awaitable[HttpResponseBase]]
    ) -> None:
        super().__init__()
        self.request = request
        self.view = view
        self.language = translation.get_language()
        self.is_kept = False
        """There is an answer, with whose end the request ends."""


def promised_by(first: First, request: HttpRequest) -> HttpResponseBase:
    """Of a view in halves: the first is done, the other promised."""
    found = first(request)
    return found if isinstance(found, HttpResponseBase) else Promise(request, found)


def log_failure(request: HttpRequest, response: HttpResponseBase) -> None:
    """As Django's own handler logs an answer that is one, for those whom it does not answer."""
    if response.status_code >= HTTPStatus.BAD_REQUEST:
        log_response(
            "%s: %s",
            response.reason_phrase,
            request.path,
            response=response,  # type: ignore[arg-type]  # of any kind, it reads the status alone
            request=request,
        )
