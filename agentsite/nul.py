"""A NUL character in an address: such a thing is not found, and such a filter is not valid.

Not every database can be asked for one, so no page is. The doors for programs (`/v1`, `/api`, `/agui`,
`/mcp`) say it in their own shape, and what forms hold is cleaned or refused where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext as _

from harness.errors import Invalid, NotFound

from .declined import answer_to

PROGRAMS = ("/v1/", "/v0.1/", "/api/", "/agui", "/mcp")


class NulMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self,
        request: HttpRequest,
        view: Callable[..., HttpResponseBase],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> HttpResponse | None:
        if request.path_info.startswith(PROGRAMS):
            return None
        if "\0" in request.path_info:
            return answer_to(request, NotFound(_("There is nothing at this address.")))
        for name, given in request.GET.lists():
            if any("\0" in text for text in (name, *given)):
                problem = Invalid(
                    _("A parameter holds a NUL character."),
                    field=name.replace("\0", ""),
                    hint=_("Leave it out."),
                )
                return answer_to(request, problem)
        return None
