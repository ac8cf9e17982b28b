"""The gate's page of an agent: what releases need, which versions wait, and who released what."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.forms import refuse
from accounts.requests import SignedInRequest
from agents.actions.agents import CHANGE, require_editor
from agents.models import Agent, AgentVersion
from evals.actions.canaries import MOST_SHARE
from evals.actions.releases import need_no_more, release_version, require_suite, roll_back
from evals.canaries import canary_of, figures
from evals.forms import ReleaseForm, RequirementForm
from evals.gate import words_on
from evals.models import Release, Requirement, Suite
from harness.errors import AgentError, NotFound

from .lookup import find_suite, find_version

MOST_VERSIONS = 5
"""The newest that the page judges."""
MOST_RELEASES = 20


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show(request: SignedInRequest, uid: str) -> HttpResponse:
    """A POST says that releases need one more suite, or need it otherwise."""
    agent = find_agent(request, uid)
    form = _requirement_form(request, agent, bound=request.method == "POST")
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                given = dict(form.cleaned_data)
                suite = find_suite(request.user, given.pop("suite"))
                require_suite(actor=request.user, agent=agent, suite=suite, **given)
                messages.success(request, _("New versions of this agent wait until it is green."))
                return redirect("evals:releases", uid=uid)
        except AgentError as problem:
            status = refuse(form, problem)
    return _page(request, agent, form, status)


@login_required
@require_POST
def need_less(request: SignedInRequest, uid: str) -> HttpResponse:
    agent = find_agent(request, uid)
    rows = Requirement.objects.filter(agent=agent).select_related("agent", "suite")
    found = rows.filter(suite__uid=request.POST.get("suite", "").replace("\0", "")).first()
    if found is None:
        raise NotFound(_("Releases of this agent do not need this suite."))
    need_no_more(actor=request.user, requirement=found)
    messages.success(request, _("Releases need it no more."))
    return redirect("evals:releases", uid=uid)


@login_required
@require_POST
def release(request: SignedInRequest, uid: str) -> HttpResponse:
    agent = find_agent(request, uid)
    form = ReleaseForm(request.POST)
    try:
        if form.is_valid():
            version = find_version(request.user, agent, form.cleaned_data["version"])
            release_version(
                actor=request.user,
                agent=agent,
                version=version,
                reason=form.cleaned_data["reason"],
            )
            messages.success(request, _("New conversations begin with this version."))
            return redirect("evals:releases", uid=uid)
        status = 422
    except AgentError as problem:
        status = refuse(form, problem)
    context = {"agent": agent, "form": form}
    return render(request, "evals/refused.html", context, status=status)


@login_required
@require_POST
def go_back(request: SignedInRequest, uid: str) -> HttpResponse:
    try:
        roll_back(actor=request.user, agent=find_agent(request, uid))
    except AgentError as problem:
        if problem.code != "conflict":
            raise
        messages.error(request, problem.words)
    else:
        messages.success(request, _("The version before is in use again."))
    return redirect("evals:releases", uid=uid)


def find_agent(request: SignedInRequest, uid: str) -> Agent:
    """NotFound for one that the person does not see or may not change."""
    rows = Agent.objects.visible_to(request.user).select_related("organisation", "current")
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such agent."))
    require_editor(request.user, found, CHANGE)
    return found


def _requirement_form(request: SignedInRequest, agent: Agent, *, bound: bool) -> RequirementForm:
    form = RequirementForm(request.POST if bound else None)
    suites = Suite.objects.visible_to(request.user)
    if agent.organisation_id is not None:
        suites = suites.filter(organisation=agent.organisation_id)
    fields: Any = form.fields
    fields["suite"].choices = [(each.uid, each.name) for each in suites]
    return form


def _page(
    request: SignedInRequest, agent: Agent, form: RequirementForm, status: int
) -> HttpResponse:
    seen = AgentVersion.objects.visible_to(request.user).filter(agent=agent)
    newer = seen.order_by("-number")
    if agent.current is not None:
        newer = newer.filter(number__gt=agent.current.number)
    waiting = []
    for version in newer[:MOST_VERSIONS]:
        version.agent = agent
        words = words_on(version)
        waiting.append((version, words, all(word.green for word in words)))
    canary = canary_of(agent.pk)
    if canary is not None:
        canary.version.agent = agent
    releases = Release.objects.filter(agent=agent).select_related(
        "version", "replaced", "released_by"
    )
    context = {
        "agent": agent,
        "form": form,
        "requirements": Requirement.objects.filter(agent=agent).select_related("suite"),
        "waiting": waiting,
        "canary": canary,
        "figures": figures(canary) if canary else (),
        "canary_green": canary and all(word.green for word in words_on(canary.version)),
        "most_share": MOST_SHARE,
        "releases": releases[:MOST_RELEASES],
        "release_form": ReleaseForm(),
    }
    return render(request, "evals/releases.html", context, status=status)
