"""A person's own vaults: what is in them by name and address, a way in for secrets, and none out."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, F, Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error, refuse
from accounts.requests import SignedInRequest
from harness.errors import AgentError, NotFound

from .actions import credentials, vaults
from .forms import CredentialForm, ReplacementForm, VaultForm
from .models import Vault, VaultCredential

IN_FORCE_FIRST = F("archived_at").asc(nulls_first=True)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_vaults(request: SignedInRequest) -> HttpResponse:
    """The vaults of the organisation one works in, and a form for a new one."""
    if request.method != "POST":
        return _list(request, VaultForm())
    form = VaultForm(request.POST)
    try:
        require_shown_organisation(request)
        if form.is_valid():
            made = vaults.create_vault(
                actor=request.user, organisation=request.organisation, **form.cleaned_data
            )
            messages.success(request, _("The vault is made."))
            return redirect("vaults:vault", uid=made.uid)
    except AgentError as error:
        return _list(request, form, status=refuse(form, error))
    return _list(request, form, status=422)


@sensitive_post_parameters("token")
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_vault(request: SignedInRequest, uid: str) -> HttpResponse:
    """One vault with its credentials; storing another."""
    found = _find(request, uid)
    if request.method != "POST":
        return _show(request, found)
    form = CredentialForm(request.POST)
    if form.is_valid():
        try:
            credentials.create_credential(actor=request.user, vault=found, **form.values())
        except NotFound:
            raise
        except AgentError as error:
            add_error(form, error)
        else:
            messages.success(request, _("The secret is stored."))
            return redirect("vaults:vault", uid=uid)
    return _show(request, found, form=form, status=422)


@login_required
@require_POST
def archive_vault(request: SignedInRequest, uid: str) -> HttpResponse:
    vaults.archive_vault(actor=request.user, vault=_find(request, uid))
    messages.success(request, _("The vault is archived; its secrets are gone."))
    return redirect("vaults:vault", uid=uid)


@login_required
@require_POST
def delete_vault(request: SignedInRequest, uid: str) -> HttpResponse:
    vaults.delete_vault(actor=request.user, vault=_find(request, uid))
    messages.success(request, _("The vault and everything in it is deleted."))
    return redirect("vaults:vaults")


@sensitive_post_parameters("token")
@login_required
@require_POST
@never_cache
def replace_secret(request: SignedInRequest, uid: str, credential_uid: str) -> HttpResponse:
    found = _find(request, uid)
    row = _find_credential(found, credential_uid)
    form = ReplacementForm(request.POST)
    if form.is_valid():
        try:
            credentials.change_credential(
                actor=request.user, credential=row, auth=form.auth(row.kind)
            )
        except NotFound:
            raise
        except AgentError as error:
            add_error(form, error)
        else:
            messages.success(request, _("The secret is replaced."))
            return redirect("vaults:vault", uid=uid)
    return _show(request, found, replacing=row.uid, replacement=form, status=422)


@login_required
@require_POST
def archive_credential(request: SignedInRequest, uid: str, credential_uid: str) -> HttpResponse:
    row = _find_credential(_find(request, uid), credential_uid)
    credentials.archive_credential(actor=request.user, credential=row)
    messages.success(request, _("The secret is gone; its record stays."))
    return redirect("vaults:vault", uid=uid)


@login_required
@require_POST
def delete_credential(request: SignedInRequest, uid: str, credential_uid: str) -> HttpResponse:
    row = _find_credential(_find(request, uid), credential_uid)
    credentials.delete_credential(actor=request.user, credential=row)
    messages.success(request, _("The secret is deleted with its record."))
    return redirect("vaults:vault", uid=uid)


def _find(request: SignedInRequest, uid: str) -> Vault:
    found = Vault.objects.visible_to(request.user).select_related("organisation")
    vault = found.filter(uid=uid).first()
    if vault is None:
        raise NotFound(_("There is no such vault."))
    return vault


def _find_credential(vault: Vault, uid: str) -> VaultCredential:
    row = vault.credentials.select_related("vault").filter(uid=uid).first()
    if row is None:
        raise NotFound(_("There is no such credential."))
    return row


def _list(request: SignedInRequest, form: VaultForm, *, status: int = 200) -> HttpResponse:
    rows = Vault.objects.visible_to(request.user).filter(organisation=request.organisation)
    held = Count("credentials", filter=Q(credentials__archived_at=None))
    context = {"rows": rows.annotate(held=held).order_by(IN_FORCE_FIRST, "-pk"), "form": form}
    return render(request, "vaults/vaults.html", context, status=status)


def _show(
    request: SignedInRequest, vault: Vault, *, status: int = 200, **extra: Any
) -> HttpResponse:
    context: dict[str, Any] = {
        "vault": vault,
        "credentials": vault.credentials.order_by(IN_FORCE_FIRST, "-pk"),
        "form": CredentialForm(),
        **extra,
    }
    return render(request, "vaults/vault.html", context, status=status)
