"""The organisation page: its members and invitations, and the choice of the current one."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from accounts.actions.invitations import invite_member, withdraw_invitation
from accounts.actions.members import change_role, remove_member
from accounts.actions.organisations import (
    create_organisation,
    rename_organisation,
    set_reviewers_see,
)
from accounts.current_organisation import choose_organisation, require_shown_organisation
from accounts.forms import InvitationForm, OrganisationForm, add_error
from accounts.invitation_mail import send_invitation
from accounts.models import Invitation, Membership, Organisation, ReviewersSee, Role
from accounts.permissions import require_member
from accounts.requests import SignedInRequest
from harness.errors import AgentError, Conflict, Forbidden, LimitReached, NotFound


@login_required
@require_GET
def show_organisation(request: SignedInRequest) -> HttpResponse:
    return _page(request)


@login_required
@require_POST
@never_cache
def invite(request: SignedInRequest) -> HttpResponse:
    own = require_member(request.user, request.organisation)
    form = InvitationForm(request.POST, own_role=own)
    try:
        require_shown_organisation(request)
    except Conflict as error:
        add_error(form, error)
        return _page(request, invitation_form=form, status=409)
    if not form.is_valid():
        return _page(request, invitation_form=form, status=422)
    try:
        issued = invite_member(
            actor=request.user,
            organisation=request.organisation,
            email=form.cleaned_data["email"],
            role=form.cleaned_data["role"],
        )
    except NotFound:
        raise
    except AgentError as error:
        add_error(form, error)
        return _page(request, invitation_form=form, status=422)
    address = reverse("accounts:invitation", args=[issued.token])
    link = request.build_absolute_uri(address)
    sent = send_invitation(issued.invitation, link)
    # The page itself is the answer, not a redirect: the link is shown once and kept nowhere.
    return _page(request, issued=issued.invitation, link=link, sent=sent)


@login_required
@require_POST
def withdraw(request: SignedInRequest, uid: str) -> HttpResponse:
    invitation = Invitation.objects.visible_to(request.user).filter(uid=uid).first()
    if invitation is None:
        raise Http404
    require_shown_organisation(request)
    if invitation.organisation_id != request.organisation.pk:
        raise Http404
    try:
        withdraw_invitation(actor=request.user, invitation=invitation)
    except Conflict as error:
        _show_error(request, error)
    else:
        messages.success(request, _("The invitation was withdrawn."))
    return redirect("accounts:organisation")


@login_required
@require_POST
def set_role(request: SignedInRequest, pk: int) -> HttpResponse:
    membership = _membership(request, pk)
    try:
        ended = change_role(
            actor=request.user, membership=membership, role=request.POST.get("role", "")
        )
    except NotFound:
        raise
    except AgentError as error:
        _show_error(request, error)
    else:
        messages.success(request, _("The role was changed."))
        _show_ended_tokens(request, ended)
    return redirect("accounts:organisation")


@login_required
@require_POST
def remove(request: SignedInRequest, pk: int) -> HttpResponse:
    membership = _membership(request, pk)
    try:
        ended = remove_member(actor=request.user, membership=membership)
    except (Conflict, Forbidden) as error:
        _show_error(request, error)
    else:
        messages.success(request, _("%(person)s was removed.") % {"person": membership.user})
        _show_ended_tokens(request, ended)
    return redirect("accounts:organisation")


@login_required
@require_POST
def show_reviewers(request: SignedInRequest) -> HttpResponse:
    """What reviewers see of a call's conversation."""
    try:
        require_shown_organisation(request)
        set_reviewers_see(
            actor=request.user,
            organisation=request.organisation,
            shown=request.POST.get("reviewers_see", ""),
        )
    except NotFound:
        raise
    except AgentError as error:
        _show_error(request, error)
    else:
        messages.success(request, _("What reviewers see is changed."))
    return redirect("accounts:organisation")


@login_required
@require_POST
def rename(request: SignedInRequest) -> HttpResponse:
    form = OrganisationForm(request.POST)
    try:
        require_shown_organisation(request)
    except Conflict as error:
        add_error(form, error)
        return _page(request, rename_form=form, status=409)
    if form.is_valid():
        try:
            rename_organisation(
                actor=request.user,
                organisation=request.organisation,
                name=form.cleaned_data["name"],
            )
        except NotFound:
            raise
        except AgentError as error:
            add_error(form, error)
        else:
            messages.success(request, _("The organisation was renamed."))
            return redirect("accounts:organisation")
    return _page(request, rename_form=form, status=422)


@login_required
@require_POST
def create(request: SignedInRequest) -> HttpResponse:
    form = OrganisationForm(request.POST, prefix="new")
    if form.is_valid():
        try:
            made = create_organisation(actor=request.user, name=form.cleaned_data["name"])
        except (Forbidden, LimitReached) as error:
            add_error(form, error)
        else:
            choose_organisation(request.user, request.session, made.uid)
            messages.success(request, _("You now work in %(name)s.") % {"name": made})
            return redirect("accounts:organisation")
    return _page(request, create_form=form, status=422)


@login_required
@require_POST
def switch(request: SignedInRequest) -> HttpResponse:
    chosen = choose_organisation(
        request.user, request.session, request.POST.get("organisation", "")
    )
    messages.success(request, _("You now work in %(name)s.") % {"name": chosen})
    return redirect("/")


def _membership(request: SignedInRequest, pk: int) -> Membership:
    """One of the shown organisation; a stranger's is not found, whatever the form says."""
    membership = (
        Membership.objects.visible_to(request.user).select_related("user").filter(pk=pk).first()
    )
    if membership is None:
        raise Http404
    require_shown_organisation(request)
    if membership.organisation_id != request.organisation.pk:
        raise Http404
    return membership


def _show_error(request: SignedInRequest, error: AgentError) -> None:
    messages.error(request, error.words)


def _show_ended_tokens(request: SignedInRequest, count: int) -> None:
    if not count:
        return
    message = ngettext(
        "%(count)d token of a service account was revoked, since this person made it. Its program "
        "needs a new one.",
        "%(count)d tokens of service accounts were revoked, since this person made them. Their "
        "programs need new ones.",
        count,
    )
    messages.warning(request, message % {"count": count})


def _page(request: SignedInRequest, *, status: int = 200, **extra: Any) -> HttpResponse:
    organisation = request.organisation
    own = require_member(request.user, organisation)
    context: dict[str, Any] = {
        "members": Membership.objects.filter(organisation=organisation).select_related("user"),
        "manages": own.manages,
        "grantable": [role for role in Role if own.may_grant(role)],
        "invitations": _open_invitations(organisation) if own.manages else [],
        "invitation_form": InvitationForm(own_role=own),
        "reviewers_see": ReviewersSee.choices,
        "rename_form": OrganisationForm(initial={"name": organisation.name}),
        "create_form": OrganisationForm(prefix="new"),
    }
    return render(request, "accounts/organisation.html", {**context, **extra}, status=status)


def _open_invitations(organisation: Organisation) -> Any:
    return Invitation.objects.filter(organisation=organisation).open_at(timezone.now())
