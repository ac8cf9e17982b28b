"""The queue of agents that members want to share, and the page on which one is decided."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.requests import SignedInRequest
from agents.actions.own import next_bound
from agents.actions.reviews import decide_review, why_not, withdraw_review
from agents.forms import DecisionForm, show_refusal
from agents.models import AgentReview
from agents.versiondiff import changes_between, description_of
from harness.errors import AgentError, Conflict, NotFound

REVIEWS_A_PAGE = 50
SHOWN = (
    "agent__organisation",
    "agent__current",
    "version__base__agent__current",
    "shared_version",
    "asked_by",
    "decided_by",
)


@login_required
@require_safe
def show_reviews(request: SignedInRequest) -> HttpResponse:
    """What waits, or with `decided` what was decided: one's own questions and those one may answer."""
    decided = request.GET.get("decided") == "1"
    rows = AgentReview.objects.visible_to(request.user).select_related(*SHOWN)
    waiting = AgentReview.State.WAITING
    rows = rows.exclude(state=waiting) if decided else rows.filter(state=waiting)
    page = Paginator(rows.order_by("-pk"), REVIEWS_A_PAGE).get_page(request.GET.get("page"))
    return render(request, "agents/reviews.html", {"page": page, "decided": decided})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_review(request: SignedInRequest, uid: str) -> HttpResponse:
    """What would change for the organisation; a POST decides."""
    review = _find(request, uid)
    form = DecisionForm(request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST":
        status = 422
        if form.is_valid():
            approve = request.POST.get("decision") == "approve"
            try:
                decide_review(
                    actor=request.user,
                    review=review,
                    approve=approve,
                    reason=form.cleaned_data["reason"],
                )
            except NotFound:
                raise
            except AgentError as problem:
                show_refusal(form, problem)
                status = 409 if isinstance(problem, Conflict) else 422
            else:
                done = _("%(name)s is offered to the organisation.")
                text = done if approve else _("%(name)s is refused.")
                messages.success(request, text % {"name": review.name})
                return redirect("agents:reviews")
    bound = next_bound(review.version)
    compared = review.shared_version or bound
    context = {
        "review": review,
        "form": form,
        "compared": compared,
        "changes": changes_between(compared.config, review.version.config),
        "rows": description_of(review.version.config),
        "why_not": why_not(request.user, review) if review.state == "waiting" else None,
        "is_asker": review.asked_by_id == request.user.pk,
    }
    return render(request, "agents/review.html", context, status=status)


@login_required
@require_POST
def withdraw(request: SignedInRequest, uid: str) -> HttpResponse:
    review = withdraw_review(actor=request.user, review=_find(request, uid))
    messages.success(request, _("You took it back."))
    return redirect("agents:agent", uid=review.agent.uid)


def _find(request: SignedInRequest, uid: str) -> AgentReview:
    rows = AgentReview.objects.visible_to(request.user).select_related(*SHOWN)
    review = rows.filter(uid=uid).first()
    if review is None:
        raise NotFound(_("There is no such review."))
    return review
