"""Which organisation a request works in: `request.organisation`."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils.functional import SimpleLazyObject

from accounts.current_organisation import current_organisation


class OrganisationMiddleware:
    """Sets `request.organisation`: an Organisation, or None for an anonymous visitor.

    Nothing is read before a view asks for it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.organisation = SimpleLazyObject(lambda: current_organisation(request))  # type: ignore[attr-defined]
        return self.get_response(request)
