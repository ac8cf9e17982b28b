"""The page of provider keys: a key goes in, its last four characters come out."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.actions.provider_keys import remove_provider_key, store_provider_key
from accounts.current_organisation import require_shown_organisation
from accounts.forms import ProviderKeyForm, add_error
from accounts.models import ProviderKey
from accounts.provider_keys import PROVIDERS, resolve
from accounts.requests import SignedInRequest
from harness.errors import AgentError, Conflict, NotConfigured


@sensitive_post_parameters("key")
@login_required
@require_http_methods(["GET", "POST"])
def keys(request: SignedInRequest) -> HttpResponse:
    user, organisation = request.user, request.organisation
    if request.method == "GET":
        return _page(request, ProviderKeyForm(user=user, organisation=organisation))
    form = ProviderKeyForm(request.POST, user=user, organisation=organisation)
    try:
        require_shown_organisation(request)
    except Conflict as error:
        add_error(form, error)
        return _page(request, form, status=409)
    if form.is_valid():
        try:
            store_provider_key(actor=user, organisation=organisation, **form.cleaned_data)
        except AgentError as error:
            add_error(form, error)
        else:
            messages.success(request, _("The key was stored."))
            return redirect("accounts:keys")
    return _page(request, form, status=422)


@login_required
@require_POST
def remove_key(request: SignedInRequest, uid: str) -> HttpResponse:
    row = ProviderKey.objects.visible_to(request.user).filter(uid=uid).first()
    if row is None:
        raise Http404
    remove_provider_key(actor=request.user, provider_key=row)
    messages.success(request, _("The key was removed."))
    return redirect("accounts:keys")


def _page(request: SignedInRequest, form: ProviderKeyForm, status: int = 200) -> HttpResponse:
    rows = ProviderKey.objects.visible_to(request.user).select_related("organisation")
    context = {
        "form": form,
        "keys": [(row, PROVIDERS.get(row.provider, row.provider)) for row in rows],
        "in_use": [(label, _in_use(request, name)) for name, label in PROVIDERS.items()],
    }
    return render(request, "accounts/keys.html", context, status=status)


def _in_use(request: SignedInRequest, provider: str) -> str:
    """In words, whose key this person's work would use now."""
    try:
        resolved = resolve(request.user, request.organisation, provider)
    except NotConfigured as error:
        return f"{error.message} {error.hint}".strip()
    return str(resolved.scope.label) if resolved else _("None")
