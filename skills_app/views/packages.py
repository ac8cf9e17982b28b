"""The Python packages of a version: installed by a button of its page, whose part says how that goes."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.requests import SignedInRequest
from harness.errors import AgentError, NotFound
from skills_app.access import manages
from skills_app.actions.packages import install_packages
from skills_app.packages import packages_of

from .lookup import find_version


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def packages(request: SignedInRequest, uid: str, label: str) -> HttpResponse:
    version = find_version(request, uid, label)
    if request.method == "POST":
        try:
            install_packages(actor=request.user, version=version)
        except NotFound:
            raise
        except AgentError as problem:
            messages.error(request, problem.words)
        return redirect("skills:version", uid, label)
    found = packages_of(version)
    if found is None or not request.htmx:  # type: ignore[attr-defined]
        return redirect("skills:version", uid, label)
    context = {
        "skill": version.skill,
        "version": version,
        "packages": found,
        "manages": manages(request.user, version.skill),
    }
    return render(request, "skills/_packages.html", context)
