"""The page of how a store's memories fade: the rule in words and what it did for whoever sees the store, what
it would do and its form for who writes there."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.forms import add_error
from accounts.requests import SignedInRequest
from harness.errors import AgentError, Conflict, Forbidden, NotFound
from memory.access import may_write
from memory.models import MemoryStore
from reading.digits import number_of

from .actions.rules import lift_rule, put_in_force, save_rule
from .fading import extent_of
from .forms import RuleForm, form_of
from .models import DecayRule, DecayRun
from .statistics import statistics_of

SHOWN = 50
"""Memories, and passes, that the page names."""


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def show_rule(request: SignedInRequest, uid: str) -> HttpResponse:
    """Posted, the rule is saved as a dry run."""
    store = _find(request, uid)
    if request.method != "POST":
        return _page(request, store)
    form = RuleForm(request.POST)
    if form.is_valid():
        try:
            save_rule(
                actor=request.user,
                store=store,
                days=form.days,
                also_unconfirmed=form.cleaned_data["also_unconfirmed"],
            )
            return redirect("decay:rule", uid=uid)
        except AgentError as problem:
            add_error(form, problem)
            return _page(request, store, form, problem, _status(problem))
    return _page(request, store, form, status=422)


@login_required
@require_POST
def begin(request: SignedInRequest, uid: str) -> HttpResponse:
    store = _find(request, uid)
    version = number_of(request.POST.get("version", "")) or 0
    try:
        put_in_force(actor=request.user, store=store, version=version)
    except AgentError as problem:
        return _page(request, store, problem=problem, status=_status(problem))
    return redirect("decay:rule", uid=uid)


@login_required
@require_POST
def lift(request: SignedInRequest, uid: str) -> HttpResponse:
    store = _find(request, uid)
    try:
        lift_rule(actor=request.user, store=store)
    except AgentError as problem:
        return _page(request, store, problem=problem, status=_status(problem))
    return redirect("decay:rule", uid=uid)


def _find(request: SignedInRequest, uid: str) -> MemoryStore:
    rows = MemoryStore.objects.visible_to(request.user).select_related("organisation", "agent")
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such memory store."))
    return found


def _page(
    request: SignedInRequest,
    store: MemoryStore,
    form: RuleForm | None = None,
    problem: AgentError | None = None,
    status: int = 200,
) -> HttpResponse:
    rule = DecayRule.objects.filter(store=store).select_related("store").first()
    manages = may_write(request.user, store)
    context = {
        "store": store,
        "rule": rule,
        "days": [(step, days) for step, days in rule.days.items()] if rule else [],
        "form": form or form_of(rule),
        "manages": manages,
        "problem": problem if form is None else None,
        "extent": extent_of(rule, named=SHOWN) if rule and manages else None,
        "statistics": statistics_of([store])[store.pk],
        "runs": DecayRun.objects.filter(store=store).order_by("-pk")[:SHOWN],
        "most": SHOWN,
    }
    return render(request, "decay/rule.html", context, status=status)


def _status(problem: AgentError) -> int:
    match problem:
        case NotFound():
            return 404
        case Forbidden():
            return 403
        case Conflict():
            return 409
    return 422
