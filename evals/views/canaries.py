"""What is done with an agent's canary; its figures stand on the page of releases (`releases`)."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from accounts.forms import refuse
from accounts.requests import SignedInRequest
from agents.models import Agent
from evals.actions.canaries import promote_canary, roll_back_canary, set_canary
from evals.forms import CanaryForm, PromoteForm
from harness.errors import AgentError

from .lookup import find_version
from .releases import find_agent


@login_required
@require_POST
def share(request: SignedInRequest, uid: str) -> HttpResponse:
    form = CanaryForm(request.POST)

    def give(agent: Agent) -> None:
        version = find_version(request.user, agent, form.cleaned_data["version"])
        set_canary(
            actor=request.user,
            agent=agent,
            version=version,
            share=form.cleaned_data["share"],
            reason=form.cleaned_data["reason"],
        )

    return _done(
        request, uid, form, give, _("A share of new conversations begins with this version.")
    )


@login_required
@require_POST
def promote(request: SignedInRequest, uid: str) -> HttpResponse:
    form = PromoteForm(request.POST)

    def give(agent: Agent) -> None:
        promote_canary(actor=request.user, agent=agent, **form.cleaned_data)

    return _done(request, uid, form, give, _("New conversations begin with this version."))


@login_required
@require_POST
def go_back(request: SignedInRequest, uid: str) -> HttpResponse:
    try:
        roll_back_canary(actor=request.user, agent=find_agent(request, uid))
    except AgentError as problem:
        if problem.code != "conflict":
            raise
        messages.error(request, problem.words)
    else:
        messages.success(request, _("No new conversation begins with the canary."))
    return redirect("evals:releases", uid=uid)


def _done(
    request: SignedInRequest,
    uid: str,
    form: CanaryForm | PromoteForm,
    give: Callable[[Agent], None],
    words: str,
) -> HttpResponse:
    agent = find_agent(request, uid)
    status = 422
    try:
        if form.is_valid():
            give(agent)
            messages.success(request, words)
            return redirect("evals:releases", uid=uid)
    except AgentError as problem:
        status = refuse(form, problem)
    context = {"agent": agent, "form": form, "of_canary": isinstance(form, CanaryForm)}
    return render(request, "evals/refused.html", context, status=status)
