"""The page of provider keys: a key goes in, its last four characters come out.

It is tried before it is stored. One that fails waits sealed in the session until its person says that it
is to be stored all the same, or does anything else on the page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from accounts.actions.provider_keys import (
    check_provider_key,
    remove_provider_key,
    store_provider_key,
)
from accounts.current_organisation import require_shown_organisation
from accounts.forms import ProviderKeyForm, add_error
from accounts.keytests import try_key
from accounts.models import ProviderKey, Scope, User
from accounts.persons import whose_place
from accounts.provider_keys import PROVIDERS, resolve
from accounts.requests import SignedInRequest
from accounts.vault import open_sealed, seal
from harness.errors import AgentError, Conflict, NotConfigured

HELD = "key_that_failed"
"""Where the session keeps it."""


@sensitive_post_parameters("key")
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def keys(request: SignedInRequest) -> HttpResponse:
    user, organisation = request.user, request.organisation
    held = request.session.pop(HELD, None)
    form = ProviderKeyForm(user=user, organisation=organisation)
    if request.method != "POST":
        return _page(request, form)
    keeps = "keep" in request.POST
    given: Any = _opened(held) if keeps else request.POST
    form = ProviderKeyForm(given, user=user, organisation=organisation)
    try:
        require_shown_organisation(request)
    except Conflict as error:
        add_error(form, error)
        return _page(request, form, status=409)
    if keeps and not given:
        messages.error(request, _("The key is not here any more. Type it again."))
        return redirect("accounts:keys")
    if not form.is_valid():
        return _page(request, form, status=422)
    try:
        words = "" if keeps else _tried(form.cleaned_data, user)
        store_provider_key(actor=user, organisation=organisation, **form.cleaned_data)
    except KeyFails as failure:
        request.session[HELD] = seal(json.dumps(form.cleaned_data))
        return _page(request, form, status=422, failure=failure.words)
    except AgentError as error:
        add_error(form, error)
        return _page(request, form, status=422)
    messages.success(request, " ".join(filter(None, (_("The key was stored."), words))))
    return redirect("accounts:keys")


class KeyFails(Exception):
    """A key that was to be stored does not work."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


@sensitive_variables("values", "key")
def _tried(values: Mapping[str, Any], user: User) -> str:
    """What the test of the key says. Raises `KeyFails`, and what the action would refuse."""
    scope = Scope(values["scope"])
    provider, key, base_url = check_provider_key(
        scope=scope, provider=values["provider"], key=values["key"], base_url=values["base_url"]
    )
    who = whose_place(user)
    tested = try_key(scope=scope, provider=provider, key=key, base_url=base_url, who=who)
    if tested.failed:
        raise KeyFails(tested.words)
    return tested.words


def _opened(held: str | None) -> dict[str, Any] | None:
    if held is None:
        return None
    try:
        values: dict[str, Any] = json.loads(open_sealed(held))
    except NotConfigured:
        return None
    return values


@login_required
@require_POST
def remove_key(request: SignedInRequest, uid: str) -> HttpResponse:
    row = ProviderKey.objects.visible_to(request.user).filter(uid=uid).first()
    if row is None:
        raise Http404
    remove_provider_key(actor=request.user, provider_key=row)
    messages.success(request, _("The key was removed."))
    return redirect("accounts:keys")


def _page(
    request: SignedInRequest, form: ProviderKeyForm, status: int = 200, failure: str = ""
) -> HttpResponse:
    rows = ProviderKey.objects.visible_to(request.user).select_related("organisation")
    context = {
        "form": form,
        "failure": failure,
        "keys": [(row, PROVIDERS.get(row.provider, row.provider)) for row in rows],
        "in_use": [(label, _in_use(request, name)) for name, label in PROVIDERS.items()],
    }
    return render(request, "accounts/keys.html", context, status=status)


def _in_use(request: SignedInRequest, provider: str) -> str:
    """In words, whose key this person's work would use now."""
    try:
        resolved = resolve(request.user, request.organisation, provider)
    except NotConfigured as error:
        return error.words
    return str(resolved.scope.label) if resolved else _("None")
