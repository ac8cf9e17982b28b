"""The pages of a run: its graph with the live step, what came of each, and what people do with it."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.requests import SignedInRequest
from chat.forms import as_typed
from conversations.models import Conversation
from harness.errors import Conflict
from pipelines.access import find_run
from pipelines.actions.runs import continue_run, decide_step, delete_run, stop_run
from pipelines.forms import ContinueForm, DecideForm
from pipelines.showing import show
from pipelines.waiting import asking
from reading.digits import number_of
from spending.amounts import units_of

MOST_SHOWN = 100


@login_required
@require_safe
def show_run(request: SignedInRequest, uid: str) -> HttpResponse:
    """With `whole`, the answer of the step at that place is drawn whole."""
    run = find_run(request.user, uid)
    shown = show(run, request.user, whole=number_of(request.GET.get("whole")) or 0)
    here = Conversation.objects.filter(pk=run.root_id)
    context = {
        "run": run,
        "shown": shown,
        "continue_form": ContinueForm(),
        "decide_form": DecideForm(),
        "may_write": here.writable_by(request.user).exists(),
        "may_decide": bool(shown.asks) and asking(request.user).filter(pk=run.pk).exists(),
        "is_own": run.root.owner_id == request.user.pk,
    }
    return render(request, "pipelines/run.html", context)


@login_required
@require_safe
def now(request: SignedInRequest, uid: str) -> HttpResponse:
    """What of the page changes by itself, asked for while the run is under way. `mark` is what the page was
    drawn with; where that has changed, it is loaded anew. `known`: of so many ended steps it has what they
    said, and keeps that as it is."""
    known = number_of(request.GET.get("known")) or 0
    shown = show(find_run(request.user, uid), request.user, known=known)
    answer = render(request, "pipelines/_run.html", {"run": shown.run, "shown": shown})
    if request.GET.get("mark", shown.mark) != shown.mark:
        answer["HX-Refresh"] = "true"
    return answer


@login_required
@require_safe
def show_waiting(request: SignedInRequest) -> HttpResponse:
    """Those that ask her whether they go on, beside her approvals."""
    context = {"runs": asking(request.user).in_lists()[:MOST_SHOWN], "view": "pipelines"}
    return render(request, "pipelines/waiting.html", context)


@login_required
@require_POST
def stop(request: SignedInRequest, uid: str) -> HttpResponse:
    stop_run(actor=request.user, run=find_run(request.user, uid))
    return redirect("pipelines:run", uid=uid)


@login_required
@require_POST
def go_on(request: SignedInRequest, uid: str) -> HttpResponse:
    run = find_run(request.user, uid)
    form = ContinueForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("The amount is none."))
        return redirect("pipelines:run", uid=uid)
    limit = form.cleaned_data["limit"]
    try:
        continue_run(actor=request.user, run=run, limit=None if limit is None else units_of(limit))
    except Conflict as problem:
        messages.error(request, problem.message)
    return redirect("pipelines:run", uid=uid)


@login_required
@require_POST
def decide(request: SignedInRequest, uid: str) -> HttpResponse:
    run = find_run(request.user, uid)
    try:
        decide_step(
            actor=request.user,
            run=run,
            place=number_of(request.POST.get("place")) or 0,
            approved=request.POST.get("decision") == "approve",
            comment=as_typed(request.POST.get("comment", "")),
        )
    except Conflict as problem:
        messages.error(request, problem.words)
    return redirect("pipelines:run", uid=uid)


@login_required
@require_POST
def delete(request: SignedInRequest, uid: str) -> HttpResponse:
    run = find_run(request.user, uid)
    try:
        delete_run(actor=request.user, run=run)
    except Conflict as problem:
        messages.error(request, problem.words)
        return redirect("pipelines:run", uid=uid)
    messages.success(request, _("The run is deleted."))
    return redirect("pipelines:pipelines")
