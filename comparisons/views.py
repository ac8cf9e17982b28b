"""The pages of comparisons: all there are, with a form for another, and one with its answers side by side."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.requests import SignedInRequest
from chat.forms import as_typed
from harness.errors import AgentError, Conflict
from spending.amounts import units_of

from .access import find_comparison
from .actions.comparisons import (
    continue_comparison,
    delete_comparison,
    start_comparison,
    stop_comparison,
)
from .forms import ComparisonForm, ContinueForm
from .models import Comparison
from .showing import show

MOST_SHOWN = 100


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_comparisons(request: SignedInRequest) -> HttpResponse:
    """Those one sees in the organisation one works in, and a form that starts one."""
    form = ComparisonForm(
        request.POST if request.method == "POST" else None,
        initial={"pipelines": request.GET.getlist("pipeline")},
        user=request.user,
        organisation=request.organisation,
    )
    status = 200
    if request.method == "POST":
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                given = form.cleaned_data
                comparison = start_comparison(
                    actor=request.user,
                    organisation=request.organisation,
                    question=as_typed(given["question"]),
                    pipelines=list(given["pipelines"]),
                    agents=list(given["agents"]),
                    environment=given["environment"],
                    limit=None if given["limit"] is None else units_of(given["limit"]),
                    scripted=given["scripted"],
                    judged=given["judged"],
                    judge_provider=given["judge_provider"],
                    judge_model=given["judge_model"],
                )
                return redirect("comparisons:comparison", uid=comparison.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    rows = Comparison.objects.visible_to(request.user).filter(
        root__organisation=request.organisation
    )
    context = {"comparisons": rows.in_lists()[:MOST_SHOWN], "form": form}
    return render(request, "comparisons/comparisons.html", context, status=status)


@login_required
@require_safe
def show_comparison(request: SignedInRequest, uid: str) -> HttpResponse:
    comparison = find_comparison(request.user, uid)
    context = {
        "comparison": comparison,
        "shown": show(comparison, request.user),
        "is_own": comparison.root.owner_id == request.user.pk,
        "continue_form": ContinueForm(),
    }
    return render(request, "comparisons/comparison.html", context)


@login_required
@require_safe
def now(request: SignedInRequest, uid: str) -> HttpResponse:
    """What of the page changes by itself. `mark` is what it was drawn with; where that has changed, it is
    loaded anew."""
    shown = show(find_comparison(request.user, uid), request.user)
    context = {"comparison": shown.comparison, "shown": shown}
    answer = render(request, "comparisons/_comparison.html", context)
    if request.GET.get("mark", shown.mark) != shown.mark:
        answer["HX-Refresh"] = "true"
    return answer


@login_required
@require_POST
def stop(request: SignedInRequest, uid: str) -> HttpResponse:
    stop_comparison(actor=request.user, comparison=find_comparison(request.user, uid))
    return redirect("comparisons:comparison", uid=uid)


@login_required
@require_POST
def go_on(request: SignedInRequest, uid: str) -> HttpResponse:
    comparison = find_comparison(request.user, uid)
    form = ContinueForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("The amount is none."))
        return redirect("comparisons:comparison", uid=uid)
    limit = form.cleaned_data["limit"]
    try:
        continue_comparison(
            actor=request.user,
            comparison=comparison,
            limit=None if limit is None else units_of(limit),
        )
    except Conflict as problem:
        messages.error(request, problem.message)
    return redirect("comparisons:comparison", uid=uid)


@login_required
@require_POST
def delete(request: SignedInRequest, uid: str) -> HttpResponse:
    comparison = find_comparison(request.user, uid)
    try:
        delete_comparison(actor=request.user, comparison=comparison)
    except Conflict as problem:
        messages.error(request, problem.words)
        return redirect("comparisons:comparison", uid=uid)
    messages.success(request, _("The comparison is deleted."))
    return redirect("comparisons:comparisons")
