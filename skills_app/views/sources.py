"""Where skills come from: sources, what each offers, and what installing one of it would do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.current_organisation import require_shown_organisation
from accounts.forms import refuse
from accounts.permissions import may_manage
from accounts.requests import SignedInRequest
from accounts.staff import has_staff_permission
from harness.errors import AgentError, Forbidden, NotFound
from skills_app.actions.sources import (
    add_source,
    look_at_source,
    move_source,
    remove_source,
    take_from_source,
)
from skills_app.forms import ORGANISATION, SERVER, CommitForm, SourceForm
from skills_app.looking import fetch_offer
from skills_app.models import MANAGE_ANY, SkillSource, SkillVersion, SourceOffer
from skills_app.planning import plan_installation
from skills_app.scanning import scan

SHOWN = 500
"""Offers of a source on its page."""


@dataclass(frozen=True, slots=True)
class Line:
    """One offer, and what of it is here."""

    offer: SourceOffer
    here: SkillVersion | None
    """The very same content, whatever became of it."""
    other: SkillVersion | None
    """What of this name is here in its place: the version that is offered, or the newest."""


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_sources(request: SignedInRequest) -> HttpResponse:
    staff = has_staff_permission(request.user, MANAGE_ANY)
    if not staff and not may_manage(request.user, request.organisation):
        raise Forbidden(
            _("Only owners and administrators may do this."), hint=_("Ask one of them.")
        )
    scopes = [(ORGANISATION, _("everybody in %(name)s") % {"name": request.organisation.name})]
    if staff:
        scopes.append((SERVER, _("everybody on this server")))
    posted = request.method == "POST"
    form = SourceForm(request.POST if posted else None, scopes=scopes, folders=staff)
    status = 200
    if posted:
        status = 422
        try:
            require_shown_organisation(request)
            if form.is_valid():
                given = dict(form.cleaned_data)
                whole = given.pop("scope") == SERVER
                source = add_source(
                    actor=request.user,
                    organisation=None if whole else request.organisation,
                    **given,
                )
                return _look(request, source)
        except AgentError as problem:
            status = _refused(form, problem)
    rows = SkillSource.objects.visible_to(request.user)
    rows = rows.filter(organisation__in=[request.organisation]) | rows.filter(organisation=None)
    context = {"rows": list(rows.order_by("address")), "form": form}
    return render(request, "skills/sources.html", context, status=status)


@login_required
@require_safe
def show_source(request: SignedInRequest, uid: str) -> HttpResponse:
    source = _find(request, uid)
    offers = list(source.offers.filter(gone=False)[:SHOWN])
    names = {offer.name for offer in offers}
    versions = SkillVersion.objects.filter(
        skill__organisation=source.organisation_id, skill__owner=None, skill__name__in=names
    )
    held: dict[str, list[SkillVersion]] = {}
    for version in versions.select_related("skill").order_by("-number"):
        held.setdefault(version.skill.name, []).append(version)
    context = {
        "source": source,
        "lines": [_line(offer, held.get(offer.name, [])) for offer in offers],
        "commit": CommitForm(initial={"commit": source.commit}),
    }
    return render(request, "skills/source.html", context)


@login_required
@require_POST
def look(request: SignedInRequest, uid: str) -> HttpResponse:
    return _look(request, _find(request, uid))


@login_required
@require_POST
def move(request: SignedInRequest, uid: str) -> HttpResponse:
    source = _find(request, uid)

    def act() -> None:
        move_source(actor=request.user, source=source, commit=request.POST.get("commit", ""))
        look_at_source(actor=request.user, source=source)

    return _acted(request, source, act)


@login_required
@require_POST
def remove(request: SignedInRequest, uid: str) -> HttpResponse:
    remove_source(actor=request.user, source=_find(request, uid))
    messages.success(request, _("The source is taken away; what was installed from it stays."))
    return redirect("skills:sources")


@login_required
@require_POST
def install(request: SignedInRequest, uid: str, offer_id: int) -> HttpResponse:
    """Shows what it would do; with the digest of what was shown, does it."""
    source = _find(request, uid)
    offer = source.offers.filter(pk=offer_id, gone=False).first()
    if offer is None:
        raise NotFound(_("The source does not offer this any more."))
    try:
        folder = fetch_offer(source, offer)
        if request.POST.get("digest") == folder.digest:
            version = take_from_source(
                actor=request.user, source=source, offer=offer, folder=folder
            )
            messages.success(request, _("It is stored, and waits for a review."))
            return redirect("skills:version", version.skill.uid, version.label)
        plan = plan_installation(folder, source.organisation, None)
    except NotFound:
        raise
    except AgentError as problem:
        messages.error(request, problem.words)
        return redirect("skills:source", source.uid)
    context = {
        "source": source,
        "offer": offer,
        "plan": plan,
        "folder": folder,
        "scan": scan(folder),
    }
    return render(request, "skills/plan.html", context)


def _line(offer: SourceOffer, versions: list[SkillVersion]) -> Line:
    here = next((each for each in versions if each.digest == offer.content), None)
    offered = next((each for each in versions if each.pk == each.skill.stable_id), None)
    return Line(offer, here, offered or (versions[0] if versions else None))


def _find(request: SignedInRequest, uid: str) -> SkillSource:
    found = SkillSource.objects.visible_to(request.user).filter(uid=uid)
    source = found.select_related("organisation").first()
    if source is None:
        raise NotFound(_("There is no such source."))
    return source


def _look(request: SignedInRequest, source: SkillSource) -> HttpResponse:
    return _acted(request, source, lambda: look_at_source(actor=request.user, source=source))


def _acted(
    request: SignedInRequest, source: SkillSource, act: Callable[[], object]
) -> HttpResponse:
    """Why it could not be looked at stands on the source's page, also for who comes later."""
    try:
        act()
    except NotFound:
        raise
    except AgentError as problem:
        messages.error(request, problem.words)
    return redirect("skills:source", source.uid)


def _refused(form: SourceForm, problem: AgentError) -> int:
    if getattr(problem, "field", "") == "source":
        problem.field = "address"  # type: ignore[attr-defined]
    return refuse(form, problem)
