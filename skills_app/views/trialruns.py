"""The trial run of a version: begun by a button of its page, whose part says what was seen."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import User
from accounts.requests import SignedInRequest
from harness.errors import AgentError, NotFound
from skills_app.access import manages, may_write
from skills_app.actions.trialruns import begin_trial_run
from skills_app.folder import SkillFolder
from skills_app.models import SkillTrialRun, SkillVersion
from skills_app.trialrun.planning import plan_trial_run
from skills_app.trialrun.report import Report

from .lookup import find_version


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def trial(request: SignedInRequest, uid: str, label: str) -> HttpResponse:
    version = find_version(request, uid, label)
    if request.method == "POST":
        try:
            begin_trial_run(actor=request.user, version=version)
        except NotFound:
            raise
        except AgentError as problem:
            messages.error(request, problem.words)
        return redirect("skills:version", uid, label)
    if not request.htmx:  # type: ignore[attr-defined]
        return redirect("skills:version", uid, label)
    return render(request, "skills/_trial.html", trial_of(request.user, version))


def trial_of(
    reader: User, version: SkillVersion, folder: SkillFolder | None = None
) -> dict[str, Any]:
    """For who may begin one, what the last one saw; `folder` tells whether anything of it runs."""
    if not (manages(reader, version.skill) or may_write(reader, version.skill)):
        return {}
    run = version.trial_runs.select_related("started_by").first()
    return {
        "skill": version.skill,
        "version": version,
        "tryable": folder is None or bool(plan_trial_run(folder).courses),
        "run": run,
        "report": Report.model_validate(run.report)
        if run is not None and run.state == SkillTrialRun.State.DONE
        else None,
    }
