"""The pages of hooks: those of the organisation in the order in which they are asked, with what they cost."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.models import Organisation
from accounts.permissions import may_manage
from accounts.requests import SignedInRequest
from harness.errors import AgentError, NotFound

from .actions.hooks import delete_hook, save_hook
from .forms import HookForm
from .installed import names
from .models import Hook


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_hooks(request: SignedInRequest) -> HttpResponse:
    """For managers also a form for a new one."""
    organisation = request.organisation
    form = HookForm(request.POST if request.method == "POST" else None)
    status, secret = 200, ""
    if request.method == "POST":
        try:
            require_shown_organisation(request)
            secret = _save(request, form, organisation)
            status = 422 if form.errors else 200
            if status == 200 and not secret:
                return redirect("hooks:hooks")
        except AgentError as problem:
            status = refuse(form, problem)
    context = {
        "hooks": Hook.objects.visible_to(request.user)
        .filter(organisation=organisation)
        .with_counts(),
        "form": HookForm() if secret else form,
        "secret": secret,
        "installed": names(),
        "manages": may_manage(request.user, organisation),
    }
    return render(request, "hooks/hooks.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def change(request: SignedInRequest, uid: str) -> HttpResponse:
    hook = _find(request, uid)
    fields = [*HookForm.base_fields]
    form = HookForm(
        request.POST if request.method == "POST" else None,
        initial={name: getattr(hook, name) for name in fields},
    )
    status, secret = 200, ""
    if request.method == "POST":
        try:
            secret = _save(request, form, hook.organisation, hook)
            status = 422 if form.errors else 200
            if status == 200 and not secret:
                return redirect("hooks:hooks")
        except AgentError as problem:
            status = refuse(form, problem)
    context = {"hook": hook, "form": form, "secret": secret, "installed": names()}
    return render(request, "hooks/hook.html", context, status=status)


@login_required
@require_POST
def delete(request: SignedInRequest, uid: str) -> HttpResponse:
    delete_hook(actor=request.user, hook=_find(request, uid))
    messages.success(request, _("The hook is asked no more."))
    return redirect("hooks:hooks")


def _save(
    request: SignedInRequest, form: Any, organisation: Organisation, hook: Hook | None = None
) -> str:
    """The secret, where one was made."""
    if not form.is_valid():
        return ""
    saved = save_hook(actor=request.user, organisation=organisation, hook=hook, **form.cleaned_data)
    messages.success(request, _("Saved. It is asked from the next run on."))
    return saved.secret


def _find(request: SignedInRequest, uid: str) -> Hook:
    """For a page on which it is changed. Staff who only look do so in the admin."""
    rows = Hook.objects.visible_to(request.user).select_related("organisation")
    found = rows.filter(uid=uid).first()
    if found is None or not may_manage(request.user, found.organisation):
        raise NotFound(_("There is no such hook."))
    return found
