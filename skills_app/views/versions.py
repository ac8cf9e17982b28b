"""One version of a skill: what it holds and changes, and what is decided about it and its skill."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.forms import refuse
from accounts.requests import SignedInRequest
from harness.errors import AgentError, Conflict, NotFound
from reading.unseen import visible
from rendering.markdown import to_html
from skills_app.access import manages, may_write, why_not_decide
from skills_app.actions.releases import (
    ask_for_release,
    decide_release,
    deprecate_version,
    move_channel,
    set_promotion,
    take_back,
    yank_version,
)
from skills_app.actions.skills import delete_skill, kill_skill, revive_skill
from skills_app.comparing import changes_between
from skills_app.contracts import contract_of
from skills_app.files import files_of, folder_of
from skills_app.forms import DecisionForm, DeprecationForm, ReasonForm
from skills_app.listing import lacking_packages, names_beside, waiting_for
from skills_app.lookalikes import one_slip_from
from skills_app.models import Skill, SkillVersion
from skills_app.names import SKILL
from skills_app.packages import packages_of
from skills_app.packing import pack
from skills_app.scanning import scan

from .lookup import find_skill, find_version
from .trialruns import trial_of

SHOWN_BYTES = 100_000
"""Of one file, on a page."""
SHOWN_FILES = 50


@login_required
@require_safe
def show_reviews(request: SignedInRequest) -> HttpResponse:
    rows = list(waiting_for(request.user)[:200])
    context = {"rows": rows, "lacking": lacking_packages(request.user)}
    return render(request, "skills/reviews.html", context)


@login_required
@require_safe
def show_version(request: SignedInRequest, uid: str, label: str) -> HttpResponse:
    return _version_page(request, find_version(request, uid, label))


@login_required
@require_safe
def download(request: SignedInRequest, uid: str, label: str) -> HttpResponse:
    version = find_version(request, uid, label)
    name = version.skill.name
    response = HttpResponse(pack(name, files_of(version)), content_type="application/zip")
    disposition = content_disposition_header(True, f"{name}-{version.label}.zip")
    response.headers["Content-Disposition"] = disposition or "attachment"
    return response


@login_required
@require_POST
def ask(request: SignedInRequest, uid: str, label: str) -> HttpResponse:
    version = find_version(request, uid, label)

    def act() -> str:
        found = ask_for_release(actor=request.user, version=version)
        if found.state == SkillVersion.State.RELEASED:
            return _("It is released: name it behind a slash in a conversation of yours.")
        return _("Somebody who manages the skill looks at it now.")

    return _acted(request, version, act)


@login_required
@require_POST
def back(request: SignedInRequest, uid: str, label: str) -> HttpResponse:
    version = find_version(request, uid, label)

    def act() -> str:
        take_back(actor=request.user, version=version)
        return _("You took it back.")

    return _acted(request, version, act)


@login_required
@require_POST
def decide(request: SignedInRequest, uid: str, label: str) -> HttpResponse:
    version = find_version(request, uid, label)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        return _version_page(request, version, decision=form, status=422)
    approve = request.POST.get("decision") == "approve"
    try:
        decide_release(
            actor=request.user,
            version=version,
            approve=approve,
            channel=form.cleaned_data["channel"] or "stable",
            reason=form.cleaned_data["reason"],
            expected_digest=form.cleaned_data["expected_digest"],
        )
    except AgentError as problem:
        status = refuse(form, problem)
        return _version_page(request, version, decision=form, status=status)
    text = _("%(name)s is released.") if approve else _("%(name)s is refused.")
    messages.success(request, text % {"name": version})
    return redirect("skills:reviews")


@login_required
@require_POST
def deprecate(request: SignedInRequest, uid: str, label: str) -> HttpResponse:
    version = find_version(request, uid, label)
    form = DeprecationForm(request.POST)
    if not form.is_valid():
        return _version_page(request, version, deprecation=form, status=422)

    def act() -> str:
        deprecate_version(actor=request.user, version=version, **form.cleaned_data)
        return _("Whoever uses it is warned from now on.")

    return _acted(request, version, act)


@login_required
@require_POST
def withdraw(request: SignedInRequest, uid: str, label: str) -> HttpResponse:
    version = find_version(request, uid, label)

    def act() -> str:
        yank_version(actor=request.user, version=version, reason=request.POST.get("reason", ""))
        return _("No conversation that begins from now on gets it.")

    return _acted(request, version, act)


@login_required
@require_POST
def move(request: SignedInRequest, uid: str) -> HttpResponse:
    skill = find_skill(request, uid)
    label = request.POST.get("version", "")
    version = find_version(request, uid, label) if label else None

    def act() -> str:
        channel = request.POST.get("channel", "")
        move_channel(actor=request.user, skill=skill, channel=channel, version=version)
        return _("Conversations that begin from now on get what the channel points to.")

    return _acted(request, skill, act)


@login_required
@require_POST
def promotion(request: SignedInRequest, uid: str) -> HttpResponse:
    skill = find_skill(request, uid)

    def act() -> str:
        promotes = request.POST.get("promotes") == "1"
        set_promotion(actor=request.user, skill=skill, promotes=promotes)
        if promotes:
            return _("Its canary becomes stable once its cases are green.")
        return _("Its canary waits for somebody to make it stable.")

    return _acted(request, skill, act)


@login_required
@require_POST
def stop(request: SignedInRequest, uid: str) -> HttpResponse:
    skill = find_skill(request, uid)

    def act() -> str:
        kill_skill(actor=request.user, skill=skill, reason=request.POST.get("reason", ""))
        return _("It is stopped everywhere.")

    return _acted(request, skill, act)


@login_required
@require_POST
def revive(request: SignedInRequest, uid: str) -> HttpResponse:
    skill = find_skill(request, uid)

    def act() -> str:
        revive_skill(actor=request.user, skill=skill)
        return _("It is used again.")

    return _acted(request, skill, act)


@login_required
@require_POST
def delete(request: SignedInRequest, uid: str) -> HttpResponse:
    skill = find_skill(request, uid)
    try:
        delete_skill(actor=request.user, skill=skill)
    except Conflict as problem:
        messages.error(request, problem.words)
        return redirect("skills:skill", skill.uid)
    messages.success(request, _("The skill is deleted."))
    return redirect("skills:library")


def _acted(
    request: SignedInRequest, what: Skill | SkillVersion, act: Callable[[], str]
) -> HttpResponse:
    """What was done, or why not, in words above the page that one comes back to."""
    try:
        messages.success(request, act())
    except NotFound:
        raise
    except AgentError as problem:
        messages.error(request, problem.words)
    if isinstance(what, SkillVersion):
        return redirect("skills:version", what.skill.uid, what.label)
    return redirect("skills:skill", what.uid)


def _version_page(
    request: SignedInRequest,
    version: SkillVersion,
    *,
    decision: DecisionForm | None = None,
    deprecation: DeprecationForm | None = None,
    status: int = 200,
) -> HttpResponse:
    skill = version.skill
    folder = folder_of(version)
    others = (
        SkillVersion.objects.visible_to(request.user).filter(skill=skill).exclude(pk=version.pk)
    )
    wanted = request.GET.get("against", "")
    against = others.filter(label=wanted).first() if wanted else None
    if against is None and not wanted:
        stable = skill.stable if skill.stable_id != version.pk else None
        against = stable or others.filter(number__lt=version.number).order_by("-number").first()
    waits = version.state == SkillVersion.State.WAITING
    context = {
        "skill": skill,
        "version": version,
        "html": to_html(folder.body, first_heading=3),
        "source": _text_of(folder.files[SKILL]),
        "files": [_shown(path, data) for path, data in list(folder.files.items())[:SHOWN_FILES]],
        "more": max(0, len(folder.files) - SHOWN_FILES),
        "against": against,
        "others": others.order_by("-number"),
        "changes": changes_between(files_of(against), folder.files) if against else None,
        "scan": scan(folder),
        "trial": trial_of(request.user, version, folder),
        "packages": packages_of(version),
        "contract": contract_of(version),
        "near": one_slip_from(skill.name, names_beside(skill)),
        "why_not": why_not_decide(request.user, version) if waits else None,
        "decision": decision or DecisionForm(initial={"expected_digest": version.digest}),
        "deprecation": deprecation or DeprecationForm(auto_id="deprecate_%s"),
        "reason": ReasonForm(auto_id="withdraw_%s"),
        "manages": manages(request.user, skill),
        "may_write": may_write(request.user, skill),
        "is_asker": version.asked_by_id == request.user.pk,
    }
    return render(request, "skills/version.html", context, status=status)


def _shown(path: str, data: bytes) -> dict[str, Any]:
    """A file for the page, with its text where it is text that is not too long."""
    text = ""
    if path != SKILL and len(data) <= SHOWN_BYTES and b"\0" not in data:
        with suppress(UnicodeDecodeError):
            data.decode()
            text = _text_of(data)
    return {"path": path, "size": len(data), "text": text}


def _text_of(data: bytes) -> str:
    """What agents read of it, with nothing that cannot be seen."""
    return visible(data.decode(errors="replace").replace("\r\n", "\n"))
