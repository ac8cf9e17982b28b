"""Trying the cases that a version of a skill carries."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.requests import SignedInRequest
from evals.access import require_suites_of
from evals.actions.evaluations import start_evaluation
from evals.contracts import contract, suite_for
from evals.forms import TrySkillForm
from evals.models import Evaluation
from harness.errors import AgentError, NotFound
from skills_app.models import SkillVersion

from .lookup import find_version

MOST = 50


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def try_skill(request: SignedInRequest, uid: str) -> HttpResponse:
    organisation = request.organisation
    rows = SkillVersion.objects.visible_to(request.user).filter(uid=uid)
    version = rows.select_related("skill__organisation").first()
    if version is None or version.skill.organisation_id not in {None, organisation.pk}:
        raise NotFound(_("There is no such version."))
    require_suites_of(request.user, organisation)
    form = TrySkillForm(
        request.POST if request.method == "POST" else None,
        user=request.user,
        organisation=organisation,
    )
    status = 200
    if request.method == "POST":
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                agent, number = form.cleaned_data["agent"], form.cleaned_data["version"]
                tried = find_version(request.user, agent, number)
                with transaction.atomic():
                    suite = suite_for(
                        actor=request.user, organisation=organisation, version=version
                    )
                    started = start_evaluation(
                        actor=request.user,
                        suite=suite,
                        version=tried,
                        skill_version=version,
                        **form.values(),
                    )
                return redirect("evals:evaluation", uid=started.uid)
        except AgentError as problem:
            status = refuse(form, problem)
    seen = Evaluation.objects.visible_to(request.user).filter(skill_version=version)
    context = {
        "version": version,
        "contract": contract(version),
        "form": form,
        "evaluations": seen.select_related("agent_version__agent")[:MOST],
    }
    return render(request, "evals/skill.html", context, status=status)
