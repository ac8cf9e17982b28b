"""Budgets: how they stand, and setting and lifting them."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error
from accounts.permissions import may_manage
from accounts.requests import SignedInRequest
from chat.views.answers import safe_next
from chat.views.lookup import find_conversation
from conversations.actions.own import require_own
from harness.errors import AgentError, Conflict, NotFound
from spending.actions.budgets import may_change, remove_budget, set_budget
from spending.forms import BudgetForm, ConversationBudgetForm
from spending.models import Budget
from spending.nearend import draw_near_end
from spending.standings import applying_to_owner, standings

MOST_SHOWN = 200


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def budgets(request: SignedInRequest) -> HttpResponse:
    """Those of the organisation one works in, and for superusers the server's."""
    manages = may_manage(request.user, request.organisation)
    form = (
        BudgetForm(
            request.POST if request.method == "POST" else None,
            organisation=request.organisation,
            with_deployment=request.user.is_superuser,
        )
        if manages
        else None
    )
    status = 200
    if request.method == "POST":
        status = 422
        try:
            require_shown_organisation(request)
            if form is None:
                raise NotFound(_("There is nothing to set here."))
            if form.is_valid():
                set_budget(actor=request.user, **form.values())
                messages.success(request, _("The budget is set."))
                return redirect("spending:budgets")
        except AgentError as error:
            if form is None or isinstance(error, NotFound):
                raise
            add_error(form, error)
            status = 409 if isinstance(error, Conflict) else 422
    visible = (
        Budget.objects.visible_to(request.user)
        .in_force()
        .filter(Q(organisation=request.organisation) | Q(organisation=None))
        .distinct()
    )
    context = {
        "rows": _rows(request, visible, manages=manages),
        "form": form,
        "organisation": request.organisation,
    }
    return render(request, "spending/budgets.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def conversation_budget(request: SignedInRequest, uid: str) -> HttpResponse:
    """What one conversation, with those it starts, may use."""
    conversation = find_conversation(request.user, uid)
    require_own(request.user, conversation)
    form = ConversationBudgetForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            set_budget(
                actor=request.user,
                scope=Budget.Scope.CONVERSATION,
                conversation=conversation,
                **form.amount(),
            )
        except NotFound:
            raise
        except AgentError as error:
            add_error(form, error)
        else:
            messages.success(request, _("The budget is set."))
            return redirect("spending:budget", uid=conversation.uid)
    manages = may_manage(request.user, conversation.organisation)
    context = {
        "conversation": conversation,
        "rows": _rows(
            request,
            applying_to_owner(conversation),
            manages=manages,
            conversation=conversation,
        ),
        "form": form,
        "next": reverse("spending:budget", kwargs={"uid": conversation.uid}),
    }
    status = 422 if form.errors else 200
    return render(request, "spending/budget.html", context, status=status)


@login_required
@require_safe
@never_cache
def near_end(request: SignedInRequest, uid: str) -> HttpResponse:
    """The line of a conversation's page about budgets that are near their end; empty once none is."""
    return HttpResponse(draw_near_end(find_conversation(request.user, uid)))


@login_required
@require_POST
def remove(request: SignedInRequest, uid: str) -> HttpResponse:
    budget = Budget.objects.visible_to(request.user).filter(uid=uid).distinct().first()
    if budget is None:
        raise NotFound(_("There is no such budget."))
    remove_budget(actor=request.user, budget=budget)
    messages.success(request, _("The budget is lifted."))
    return redirect(safe_next(request) or "spending:budgets")


def _rows(
    request: SignedInRequest, found: Any, *, manages: bool, conversation: Any = None
) -> list[dict[str, Any]]:
    """Each budget's standing, and whether this person may lift it."""
    listed = list(found.select_related("organisation", "user", "conversation__owner")[:MOST_SHOWN])
    return [
        {
            "standing": standing,
            "budget": budget,
            "may_remove": (manages and budget.organisation_id is not None)
            or may_change(request.user, budget),
        }
        for budget, standing in zip(
            listed,
            standings(listed, conversation=conversation, person=request.user.pk),
            strict=True,
        )
    ]
