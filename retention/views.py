"""The page of how long conversations are kept: the rule in words for every member, its form for managers."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error
from accounts.permissions import may_manage
from accounts.requests import SignedInRequest
from conversations.models import Conversation
from harness.errors import AgentError, Conflict, Forbidden, NotFound
from reading.digits import number_of

from .actions.rules import lift_rule, put_in_force, save_rule
from .expiring import extent_of, goes_at, meant_by
from .forms import RuleForm
from .models import RetentionRule

SHOWN = 50
"""Conversations that the page names."""


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_rule(request: SignedInRequest) -> HttpResponse:
    """Posted, the rule is saved as a dry run."""
    if request.method != "POST":
        return _page(request)
    form = RuleForm(request.POST)
    try:
        require_shown_organisation(request)
        if form.is_valid():
            save_rule(
                actor=request.user,
                organisation=request.organisation,
                days=form.cleaned_data["days"],
                only_archived=form.cleaned_data["only_archived"],
            )
            return redirect("retention:rule")
    except AgentError as problem:
        add_error(form, problem)
        return _page(request, form, problem, _status(problem))
    return _page(request, form, status=422)


@login_required
@require_POST
def begin(request: SignedInRequest) -> HttpResponse:
    try:
        require_shown_organisation(request)
        put_in_force(
            actor=request.user,
            organisation=request.organisation,
            version=number_of(request.POST.get("version", "")) or 0,
        )
    except AgentError as problem:
        return _page(request, problem=problem, status=_status(problem))
    return redirect("retention:rule")


@login_required
@require_POST
def lift(request: SignedInRequest) -> HttpResponse:
    try:
        require_shown_organisation(request)
        lift_rule(actor=request.user, organisation=request.organisation)
    except AgentError as problem:
        return _page(request, problem=problem, status=_status(problem))
    return redirect("retention:rule")


def _page(
    request: SignedInRequest,
    form: RuleForm | None = None,
    problem: AgentError | None = None,
    status: int = 200,
) -> HttpResponse:
    manages = may_manage(request.user, request.organisation)
    rule = RetentionRule.objects.filter(organisation=request.organisation).first()
    initial = {"days": rule.days, "only_archived": rule.only_archived} if rule else None
    context = {
        "rule": rule,
        "form": form or RuleForm(initial=initial),
        "manages": manages,
        "problem": problem if form is None else None,
        "extent": extent_of(rule) if rule and manages else None,
        "named": _named(request, rule) if rule and manages else [],
        "soon": _soon(request, rule) if rule else [],
        "most": SHOWN,
    }
    return render(request, "retention/rule.html", context, status=status)


def _named(request: SignedInRequest, rule: RetentionRule) -> list[Conversation]:
    """Of those that would go today the ones that she may see, longest untouched first."""
    first = list(meant_by(rule).values_list("pk", flat=True)[:SHOWN])
    seen = Conversation.objects.visible_to(request.user).filter(pk__in=first)
    return list(seen.order_by("active_at", "pk"))


def _soon(request: SignedInRequest, rule: RetentionRule) -> list[tuple[Conversation, object]]:
    """Her own that go soon, and when."""
    if rule.in_force_at is None:
        return []
    hers = meant_by(rule, within=rule.warning).filter(owner=request.user)
    return [(each, goes_at(rule, each)) for each in hers[:SHOWN]]


def _status(problem: AgentError) -> int:
    match problem:
        case NotFound():
            return 404
        case Forbidden():
            return 403
        case Conflict():
            return 409
    return 422
