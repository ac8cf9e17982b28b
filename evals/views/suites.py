"""The pages of suites: all of an organisation, one with its cases, its settings and its file."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Exists, OuterRef
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.permissions import may_manage
from accounts.requests import SignedInRequest
from accounts.staff import has_staff_permission
from agents.actions.agents import CHANGE as CHANGE_AGENTS
from agents.listing import listed_agents
from chat.forms import as_typed
from evals.actions.deleting import delete_suite
from evals.actions.evaluations import start_evaluation
from evals.actions.suites import (
    change_suite,
    create_suite,
    import_suite,
    spec_of,
)
from evals.files import read_suite, written_suite
from evals.forms import ImportForm, StartForm, SuiteForm, SuiteSettingsForm
from evals.models import CHANGE_ANY, Requirement, Suite
from evals.reports import trend
from evals.shipped import example_suites
from harness.errors import AgentError, Forbidden, NotFound

from .lookup import find_suite, find_version

MOST_AGENTS = 200
MOST_EVALUATIONS = 50
"""That the page of a suite lists."""


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_suites(request: SignedInRequest) -> HttpResponse:
    """Those of the organisation one works in, and a form for a new one."""
    form = SuiteForm(request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST":
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                made = create_suite(
                    actor=request.user, organisation=request.organisation, **form.cleaned_data
                )
                messages.success(request, _("The suite is made."))
                return redirect("evals:suite", uid=made.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    return _suites(request, form, ImportForm(), status)


@login_required
@require_POST
def import_text(request: SignedInRequest) -> HttpResponse:
    """A suite as a file, or one of those we ship."""
    form = ImportForm(request.POST)
    try:
        require_shown_organisation(request)
        if form.is_valid():
            name = request.POST.get("example", "")
            text = example_suites().get(name) if name else as_typed(form.cleaned_data["text"])
            if text is None:
                raise NotFound(_("There is no such example."))
            made = import_suite(
                actor=request.user, organisation=request.organisation, spec=read_suite(text)
            )
            messages.success(request, _("The suite is what the file says."))
            return redirect("evals:suite", uid=made.uid)
        status = 422
    except AgentError as problem:
        status = refuse(form, problem)
    return _suites(request, SuiteForm(), form, status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_suite(request: SignedInRequest, uid: str) -> HttpResponse:
    """Its cases and what they came to; a POST starts an evaluation."""
    suite = find_suite(request.user, uid)
    form = StartForm(
        request.POST if request.method == "POST" else None,
        user=request.user,
        organisation=suite.organisation,
    )
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                version = find_version(
                    request.user, form.cleaned_data["agent"], form.cleaned_data["version"]
                )
                started = start_evaluation(
                    actor=request.user, suite=suite, version=version, **form.values()
                )
                return redirect("evals:evaluation", uid=started.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    evaluations = suite.evaluations.select_related("agent_version__agent", "started_by")
    context = {
        "suite": suite,
        "cases": suite.cases.defer("stored_spec").order_by("id"),
        "evaluations": evaluations.order_by("-id")[:MOST_EVALUATIONS],
        "trend": trend(suite),
        "form": form,
    }
    return render(request, "evals/suite.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: SignedInRequest, uid: str) -> HttpResponse:
    suite = find_suite(request.user, uid)
    names = ("name", "description", "judge_provider", "judge_model", "judges")
    initial = {name: getattr(suite, name) for name in names}
    form = SuiteSettingsForm(request.POST if request.method == "POST" else None, initial=initial)
    status = 200
    if request.method == "POST":
        status = 422
        try:
            if form.is_valid():
                change_suite(actor=request.user, suite=suite, **form.cleaned_data)
                messages.success(request, _("Saved."))
                return redirect("evals:suite", uid=uid)
        except AgentError as problem:
            status = refuse(form, problem)
    context = {"suite": suite, "form": form}
    return render(request, "evals/change.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: SignedInRequest, uid: str) -> HttpResponse:
    """Asks on GET; nothing is deleted by following a link."""
    suite = find_suite(request.user, uid)
    if request.method != "POST":
        return render(request, "evals/delete.html", {"suite": suite})
    delete_suite(actor=request.user, suite=suite)
    messages.success(request, _("The suite is deleted."))
    return redirect("evals:suites")


@login_required
@require_safe
def export(request: SignedInRequest, uid: str) -> HttpResponse:
    suite = find_suite(request.user, uid)
    return HttpResponse(
        written_suite(spec_of(suite)),
        content_type="application/yaml; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{suite.uid}.yaml"'},
    )


def _suites(request: SignedInRequest, form: Any, importing: Any, status: int) -> HttpResponse:
    user, organisation = request.user, request.organisation
    manages = may_manage(user, organisation) or has_staff_permission(user, CHANGE_ANY)
    if request.method == "POST" and not manages:
        raise Forbidden(_("Only owners and administrators have suites."))
    seen = listed_agents(user, organisation).annotate(
        needed=Exists(Requirement.objects.filter(agent=OuterRef("pk")))
    )
    if not has_staff_permission(user, CHANGE_AGENTS):
        seen = seen.filter(organisation=organisation)
    context = {
        "agents": seen.filter(private=False)[:MOST_AGENTS] if manages else [],
        "suites": Suite.objects.visible_to(user).filter(organisation=organisation),
        "form": form,
        "import_form": importing,
        "examples": list(example_suites()),
        "manages": manages,
    }
    return render(request, "evals/suites.html", context, status=status)
