"""The self-hosted environments that a person may use: how much work waits; for staff, the keys of their
workers. A secret is on the very page that answers its making, and never again.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.formwords import OurForm
from accounts.requests import SignedInRequest
from accounts.secretpages import require_recent
from accounts.staff import has_staff_permission
from agents.models import Environment
from harness.errors import AgentError, NotFound

from .actions.keys import create_key, revoke_key
from .items import workers_polling
from .models import LEASED, MANAGE_KEYS, EnvironmentKey, WorkItem


class KeyForm(OurForm):
    environment = forms.ChoiceField(label=gettext_lazy("Environment"))
    name = forms.CharField(
        label=gettext_lazy("Name"), help_text=gettext_lazy("Which worker will use it.")
    )

    def __init__(self, environments: list[Environment], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["environment"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101 - declared above
        field.choices = [(one.uid, one.name) for one in environments]


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_workers(request: SignedInRequest) -> HttpResponse:
    """The environments with workers, and for staff a form for a new key."""
    environments = _environments(request)
    if request.method != "POST":
        return _page(request, environments, KeyForm(environments))
    form = KeyForm(environments, request.POST)
    status = 422
    try:
        require_shown_organisation(request)
        if form.is_valid():
            chosen = form.cleaned_data["environment"]
            environment = next(one for one in environments if one.uid == chosen)
            if has_staff_permission(request.user, MANAGE_KEYS):
                require_recent(request)
            issued = create_key(
                actor=request.user, environment=environment, name=form.cleaned_data["name"]
            )
            # The page itself is the answer, not a redirect: the secret is kept nowhere.
            return _page(request, environments, KeyForm(environments), issued=issued)
    except AgentError as error:
        status = refuse(form, error)
    return _page(request, environments, form, status=status)


@login_required
@require_POST
def revoke(request: SignedInRequest, uid: str) -> HttpResponse:
    key = EnvironmentKey.objects.visible_to(request.user).filter(uid=uid).first()
    if key is None:
        raise NotFound(_("There is no such key."))
    revoke_key(actor=request.user, key=key)
    messages.success(request, _("The key is revoked, and its work taken away."))
    return redirect("workers:workers")


def _environments(request: SignedInRequest) -> list[Environment]:
    rows = Environment.objects.visible_to(request.user).usable_in(request.organisation)
    return list(rows.filter(backend=Environment.Backend.WORKER, archived_at=None))


@sensitive_variables("extra")
def _page(
    request: SignedInRequest,
    environments: list[Environment],
    form: KeyForm,
    *,
    status: int = 200,
    **extra: Any,
) -> HttpResponse:
    manages = has_staff_permission(request.user, MANAGE_KEYS)
    keys = EnvironmentKey.objects.visible_to(request.user).valid()
    rows = [
        {
            "environment": one,
            "waiting": one.work_items.filter(state=WorkItem.State.QUEUED).count(),
            "at_work": one.work_items.filter(state__in=LEASED).count(),
            "polling": workers_polling(one),
            "keys": list(keys.filter(environment=one)),
        }
        for one in environments
    ]
    context = {"rows": rows, "form": form, "manages": manages, **extra}
    return render(request, "workers/workers.html", context, status=status)
