"""An address for programs that show a token, behind the middleware that has something to say to them.

What is for people with a browser (sessions, forms, their language, htmx …) is left out: it is named in
AGENTSITE_MIDDLEWARE_OF_PAGES, so whatever is new stands here as well. The view comes in halves
(`wire.halves`). The URL conf has it as well, for whoever serves the site by Django's own handler.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from csp.constants import HEADER
from csp.utils import build_policy
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured, MiddlewareNotUsed
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponseBase
from django.urls import set_urlconf
from django.utils.module_loading import import_string

from agentsite.promises import Promise, log_failure, promised_by
from wire.halves import First

_HOOKS = ("process_view", "process_exception", "process_template_response")


class Door:
    def __init__(self, first: First) -> None:
        handler: Any = convert_exception_to_response(partial(promised_by, first))
        for name in reversed(settings.MIDDLEWARE):
            if name not in settings.AGENTSITE_MIDDLEWARE_OF_PAGES:
                handler = _around(handler, name)
        self._answer = handler
        self._policy = build_policy()

    def get_response(self, request: HttpRequest) -> HttpResponseBase:
        """As Django's handler of that name. The request is closed unless its answer is yet to come."""
        set_urlconf(settings.ROOT_URLCONF)
        response: HttpResponseBase = self._answer(request)
        # The same for every answer here, so it is made once.
        response.headers.setdefault(HEADER, self._policy)
        if not isinstance(response, Promise):
            request.close()
        log_failure(request, response)
        return response


def _around(handler: Any, name: str) -> Any:
    try:
        middleware = import_string(name)(handler)
    except MiddlewareNotUsed:
        return handler
    if any(hasattr(middleware, hook) for hook in _HOOKS):
        raise ImproperlyConfigured(f"{name} has a hook that no door calls")
    return convert_exception_to_response(middleware)
