"""Says for whom a page is drawn, so that rendering her texts takes no turn of anybody else.

What that means is `rendering.aside`'s; sockets say it themselves.
"""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase

from accounts.persons import whose_place
from rendering.aside import drawn_for


class DrawingMiddleware:
    """Reads nothing by itself: whose page it is, is asked where something is rendered aside."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        def whose() -> int | None:
            user = request.user
            return whose_place(user) if user.is_authenticated else None

        with drawn_for(whose):
            return self.get_response(request)
