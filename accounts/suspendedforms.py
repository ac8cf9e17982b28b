"""A form that was sent goes on where it was stopped for the password, also at an address with a query.

What allauth keeps of it is taken up again only by its path alone, so whatever was
typed at such an address would be lost. Nothing is kept of what a stranger sent, who may send any number:
each would be a session in the database for weeks. Who is asked for the password is said by the views.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.reauthentication import suspend_request
from allauth.core.exceptions import ReauthenticationRequired
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect


class SuspendedFormsMiddleware:
    """Stands within allauth's own, which goes by the whole address."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, ReauthenticationRequired) or request.method != "POST":
            return None
        if not request.user.is_authenticated:
            return redirect_to_login(request.path)
        methods = get_adapter().get_reauthentication_methods(request.user)
        if not methods:
            return None
        where = methods[0]["url"]
        suspend_request(request, where)
        # The query itself is kept with the form.
        return HttpResponseRedirect(f"{where}?{urlencode({REDIRECT_FIELD_NAME: request.path})}")
