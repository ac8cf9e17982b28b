"""Writing skills in the browser: a new one, and a further version of one that is there."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.requests import SignedInRequest
from accounts.staff import has_staff_permission
from harness.errors import AgentError, NotFound, TooLarge
from skills_app.access import may_write
from skills_app.actions.skills import add_version, create_skill
from skills_app.files import files_of
from skills_app.folder import SkillFolder, faults_of, read_folder
from skills_app.forms import TEMPLATE, NewSkillForm, SkillForm
from skills_app.models import MANAGE_ANY, SkillVersion
from skills_app.names import SKILL
from skills_app.packing import unpack

from .lookup import find_skill

OWN, ORGANISATION, SERVER = "own", "organisation", "server"


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: SignedInRequest) -> HttpResponse:
    """A POST with `check` says what stands against it and stores nothing."""
    scopes = [
        (OWN, _("me alone")),
        (ORGANISATION, _("everybody in %(name)s") % {"name": request.organisation.name}),
    ]
    if has_staff_permission(request.user, MANAGE_ANY):
        scopes.append((SERVER, _("everybody on this server")))
    posted = request.method == "POST"
    form = NewSkillForm(
        request.POST if posted else None,
        request.FILES if posted else None,
        scopes=scopes,
        initial={"text": TEMPLATE},
    )
    status = 200
    checked: SkillFolder | None = None
    if posted:
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                called, files = _files(form, {})
                if "check" in request.POST:
                    checked, status = read_folder(files, called=called), 200
                else:
                    scope = form.cleaned_data["scope"]
                    version = create_skill(
                        actor=request.user,
                        organisation=None if scope == SERVER else request.organisation,
                        own=scope == OWN,
                        files=files,
                        called=called,
                        note=form.cleaned_data["note"],
                    )
                    messages.success(
                        request, _("The draft is stored. Have it released when it is ready.")
                    )
                    return redirect("skills:version", version.skill.uid, version.label)
        except AgentError as problem:
            status = _refused(form, problem)
    context = {"form": form, "skill": None, "checked": checked, "faults": _faults(checked)}
    return render(request, "skills/write.html", context, status=status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: SignedInRequest, uid: str) -> HttpResponse:
    """A further version, made of the newest one that she sees. Otherwise as `new`."""
    skill = find_skill(request, uid)
    if not may_write(request.user, skill):
        raise NotFound(_("There is no such page for you."))
    newest = (
        SkillVersion.objects.visible_to(request.user)
        .filter(skill=skill)
        .order_by("-number")
        .first()
    )
    before = files_of(newest) if newest is not None else {}
    posted = request.method == "POST"
    form = SkillForm(
        request.POST if posted else None,
        request.FILES if posted else None,
        paths=tuple(path for path in before if path != SKILL),
        initial={"text": before.get(SKILL, b"").decode(errors="replace")},
    )
    status = 200
    checked: SkillFolder | None = None
    if posted:
        status = 422
        try:
            if form.is_valid():
                _called, files = _files(form, before)
                if "check" in request.POST:
                    checked, status = read_folder(files, called=skill.name), 200
                else:
                    version = add_version(
                        actor=request.user, skill=skill, files=files, note=form.cleaned_data["note"]
                    )
                    messages.success(
                        request, _("The draft is stored. Have it released when it is ready.")
                    )
                    return redirect("skills:version", skill.uid, version.label)
        except AgentError as problem:
            status = _refused(form, problem)
    context = {
        "form": form,
        "skill": skill,
        "newest": newest,
        "checked": checked,
        "faults": _faults(checked),
    }
    return render(request, "skills/write.html", context, status=status)


def _files(form: SkillForm, before: dict[str, bytes]) -> tuple[str, dict[str, bytes]]:
    """What the folder is called, as far as that was sent, and its files."""
    given = form.cleaned_data
    packed = given.get("packed")
    if packed:
        if packed.size > settings.AGENTSITE_SKILL_BYTES:
            raise TooLarge(
                _("The file is longer than %(most)d bytes.")
                % {"most": settings.AGENTSITE_SKILL_BYTES},
                field="packed",
                hint=_("Leave out what the skill does not need."),
            )
        return unpack(packed.read())
    files = {path: data for path, data in before.items() if path not in given.get("removed", ())}
    place = given["place"].strip().strip("/")
    for file in given["added"]:
        files[f"{place}/{file.name}" if place else file.name] = file.read()
    files[SKILL] = given["text"].replace("\r\n", "\n").encode(errors="replace")
    return "", files


def _faults(checked: SkillFolder | None) -> list[str]:
    return faults_of(checked) if checked is not None else []


def _refused(form: Any, problem: AgentError) -> int:
    """See `refuse`. What is wrong with a file is said at the field it came by."""
    field = getattr(problem, "field", "")
    if field in {"files", "SKILL.md", "description", "name"} or field.startswith("agentsite.yaml"):
        problem.field = "packed" if form.cleaned_data.get("packed") else "text"  # type: ignore[attr-defined]
    return refuse(form, problem)
