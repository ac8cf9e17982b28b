"""The page behind the set-up link: the first administrator and the first organisation."""

from __future__ import annotations

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounts.actions.setup import create_first_administrator, find_setup_link
from accounts.forms import SetupForm, add_error
from harness.errors import Conflict, Invalid


@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "POST"])
def set_up(request: HttpRequest, token: str) -> HttpResponse:
    """A link that is wrong, used or expired is not found, whatever is posted to it."""
    find_setup_link(token)
    if request.method == "GET":
        return render(request, "accounts/setup.html", {"form": SetupForm()})
    form = SetupForm(request.POST)
    if form.is_valid():
        try:
            user = create_first_administrator(token=token, **form.cleaned_data)
        except (Invalid, Conflict) as error:
            add_error(form, error)
        else:
            login(request, user, backend="accounts.backends.PeopleBackend")
            return redirect("/")
    return render(request, "accounts/setup.html", {"form": form}, status=422)
