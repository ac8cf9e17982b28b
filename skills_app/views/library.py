"""The library, and one skill: what it says, its versions, where it is used."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.permissions import may_manage
from accounts.requests import SignedInRequest
from accounts.staff import has_staff_permission
from rendering.markdown import to_html
from skills_app.access import manages, may_write
from skills_app.files import folder_of
from skills_app.forms import ReasonForm
from skills_app.listing import SCOPES, lacking_packages, listed, waiting_for
from skills_app.models import MANAGE_ANY, SkillVersion
from skills_app.packages import packages_of
from skills_app.uses import uses_of

from .lookup import find_skill

SKILLS_A_PAGE = 50


@login_required
@require_safe
def show_library(request: SignedInRequest) -> HttpResponse:
    query = request.GET.get("q", "")
    scope = request.GET.get("scope", "")
    rows = listed(
        request.user,
        request.organisation,
        query=query,
        scope=scope if scope in SCOPES else "",
    )
    context = {
        "page": Paginator(rows, SKILLS_A_PAGE).get_page(request.GET.get("page")),
        "query": query,
        "scope": scope,
        "waiting": waiting_for(request.user).count() + len(lacking_packages(request.user)),
        "sources": may_manage(request.user, request.organisation)
        or has_staff_permission(request.user, MANAGE_ANY),
    }
    return render(request, "skills/library.html", context)


@login_required
@require_safe
def show_skill(request: SignedInRequest, uid: str) -> HttpResponse:
    """Of what is offered; of a skill that offers nothing yet, of its newest version."""
    skill = find_skill(request, uid)
    versions = list(
        SkillVersion.objects.visible_to(request.user).filter(skill=skill).order_by("-number")
    )
    shown = skill.stable or skill.latest or (versions[0] if versions else None)
    folder = folder_of(shown) if shown is not None else None
    context = {
        "skill": skill,
        "version": shown,
        "folder": folder,
        "packages": packages_of(shown) if shown is not None else None,
        "html": to_html(folder.body, first_heading=3) if folder else "",
        "versions": versions,
        "manages": manages(request.user, skill),
        "may_write": may_write(request.user, skill),
        "uses": uses_of(request.user, skill),
        "reason": ReasonForm(),
    }
    return render(request, "skills/skill.html", context)
