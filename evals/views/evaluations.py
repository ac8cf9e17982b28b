"""The pages of an evaluation: what came of each case, against another one, and as files for others."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from accounts.requests import SignedInRequest
from evals.actions.evaluations import stop_evaluation
from evals.actions.grades import MOST_NOTE, grade_trial
from evals.exporting import as_json, as_junit
from evals.models import Evaluation, Grade
from evals.reports import case_lines, compare, summary
from reading.digits import number_of

from .lookup import find_evaluation

COMPARABLE = 30
"""Evaluations that one can be compared with from its page."""


@login_required
@require_safe
def show(request: SignedInRequest, uid: str) -> HttpResponse:
    evaluation = find_evaluation(request.user, uid)
    lines = case_lines(evaluation)
    others = evaluation.suite.evaluations.exclude(pk=evaluation.pk)
    context = {
        "evaluation": evaluation,
        "suite": evaluation.suite,
        "lines": lines,
        "summary": summary(evaluation, lines),
        "others": others.select_related("agent_version__agent").order_by("-id")[:COMPARABLE],
        "scale": range(1, Grade.SCALE + 1),
        "most_note": MOST_NOTE,
        "is_mine": evaluation.started_by_id == request.user.pk,
    }
    return render(request, "evals/evaluation.html", context)


@login_required
@require_POST
def stop(request: SignedInRequest, uid: str) -> HttpResponse:
    stop_evaluation(actor=request.user, evaluation=find_evaluation(request.user, uid))
    return redirect("evals:evaluation", uid=uid)


@login_required
@require_POST
def grade(request: SignedInRequest, uid: str) -> HttpResponse:
    """Without points, what she gave is taken back."""
    points, repetition = (request.POST.get(name, "") for name in ("points", "repetition"))
    grade_trial(
        actor=request.user,
        evaluation=find_evaluation(request.user, uid),
        case=request.POST.get("case", ""),
        repetition=number_of(repetition) or 0,
        points=(number_of(points) or 0) if points else None,
        note=request.POST.get("note", ""),
    )
    return redirect("evals:evaluation", uid=uid)


@login_required
@require_safe
def show_comparison(request: SignedInRequest, uid: str) -> HttpResponse:
    """With the one that `with` names, which stands for what was before."""
    after = find_evaluation(request.user, uid)
    before = find_evaluation(request.user, request.GET.get("with", "").replace("\0", ""))
    pairs = compare(before, after)
    context = {
        "before": before,
        "after": after,
        "suite": after.suite,
        "pairs": pairs,
        "regressed": [pair.name for pair in pairs if pair.change == "regressed"],
        "first": summary(before),
        "second": summary(after),
    }
    return render(request, "evals/comparison.html", context)


@login_required
@require_safe
def junit(request: SignedInRequest, uid: str) -> HttpResponse:
    evaluation = find_evaluation(request.user, uid)
    return HttpResponse(
        as_junit(evaluation), content_type="application/xml", headers=_named(evaluation, "xml")
    )


@login_required
@require_safe
def results(request: SignedInRequest, uid: str) -> HttpResponse:
    evaluation = find_evaluation(request.user, uid)
    return JsonResponse(as_json(evaluation), headers=_named(evaluation, "json"))


def _named(evaluation: Evaluation, ending: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{evaluation.uid}.{ending}"'}
