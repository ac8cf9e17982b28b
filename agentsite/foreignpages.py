"""At the doors for programs a cookie counts for pages of this site alone.

Whatever AGENTSITE_CORS_ORIGINS lets in shows a token: a page of another site never acts as whoever is
signed in here. For sockets `origins` does the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponseBase

from .cors import TOKEN_DOORS

_DOORS = re.compile(TOKEN_DOORS)


class ForeignPagesMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        origin = request.headers.get("origin")
        if origin is not None and _DOORS.match(request.path_info) and not _is_ours(origin, request):
            request.META.pop("HTTP_COOKIE", None)
            request.COOKIES = {}
        return self.get_response(request)


def _is_ours(origin: str, request: HttpRequest) -> bool:
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        return origin == f"{request.scheme}://{request.get_host()}"
    except DisallowedHost:
        return False
