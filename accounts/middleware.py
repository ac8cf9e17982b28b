"""What a request is answered with: its person's language, and the organisation that it works in."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from django.utils.functional import SimpleLazyObject

from accounts.current_organisation import current_organisation

_COOKIE_SECONDS = 365 * 24 * 3600


class OrganisationMiddleware:
    """Sets `request.organisation`: an Organisation, or None for an anonymous visitor.

    Nothing is read before a view asks for it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.organisation = SimpleLazyObject(lambda: current_organisation(request))  # type: ignore[attr-defined]
        return self.get_response(request)


class LanguageMiddleware:
    """Answers a signed-in person in the language of her account, on every device.

    The browser's cookie follows it: by that her sockets speak as her pages do, and so does the page on which
    she signs in the next time. Others are answered as Django's own middleware chose.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            # Nobody: to ask who it is would have the answer kept apart for each visitor.
            return self.get_response(request)
        cookie = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
        if request.user.is_authenticated and request.user.language != cookie:
            wanted = request.user.language or _as_the_browser_asks(request)
            translation.activate(wanted)
            request.LANGUAGE_CODE = wanted
        response = self.get_response(request)
        # Asked again: the request itself may have been for another language, or for signing out.
        if request.user.is_authenticated and request.user.language != cookie:
            remember(response, request.user.language)
        return response


def remember(response: HttpResponseBase, language: str) -> None:
    """Have the browser keep the language, or forget it if it is empty."""
    if language:
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=_COOKIE_SECONDS,
            samesite="Lax",
            secure=settings.SESSION_COOKIE_SECURE,
        )
    else:
        response.delete_cookie(settings.LANGUAGE_COOKIE_NAME, samesite="Lax")


def _as_the_browser_asks(request: HttpRequest) -> str:
    asked = HttpRequest()
    asked.META["HTTP_ACCEPT_LANGUAGE"] = request.headers.get("accept-language", "")
    return translation.get_language_from_request(asked)
