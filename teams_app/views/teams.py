"""The page of a conversation's team, on which a person stops, resumes and dismisses; and her answers to what
its members ask her."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from accounts.requests import SignedInRequest
from chat.views.answers import done
from chat.views.lookup import find_conversation
from conversations.models import Conversation
from harness.errors import Invalid, NotFound
from teams_app.actions.requests import answer_as_person
from teams_app.actions.teams import (
    dismiss_teammate,
    resume_teammate,
    stop_team,
    stop_teammate,
)
from teams_app.members import Member, with_since
from teams_app.models import Team, Teammate, TeamRequest

ACTS = {"stop": stop_teammate, "resume": resume_teammate, "dismiss": dismiss_teammate}
ALL = "all"
"""In place of a teammate's name, which none can have: all of them are stopped."""
REQUESTS = 50


@login_required
@require_safe
def show(request: SignedInRequest, uid: str) -> HttpResponse:
    lead = find_conversation(request.user, uid)
    return render(request, "teams/team.html", _shown(request, lead))


@login_required
@require_safe
def live(request: SignedInRequest, uid: str) -> HttpResponse:
    """Who is there and what they ask, for a page that shows it; nothing, where that is as the page has it."""
    shown = _shown(request, find_conversation(request.user, uid))
    if request.GET.get("known") == shown["known"]:
        return HttpResponse(status=204)
    return render(request, "teams/_team.html", shown)


@login_required
@require_POST
def change(request: SignedInRequest, uid: str, member: str) -> HttpResponse:
    lead = find_conversation(request.user, uid)
    if member == ALL and request.POST.get("act") == "stop":
        return _stop_all(request, lead)
    teammate = Teammate.objects.filter(team__lead=lead, name=member).select_related("team").first()
    if teammate is None:
        raise NotFound(_("There is no such teammate."))
    act = ACTS.get(request.POST.get("act", ""))
    if act is None:
        raise Invalid(
            _("There is no such choice."),
            field="act",
            hint=_("Choose from: %(names)s.") % {"names": ", ".join(ACTS)},
        )
    act(actor=request.user, teammate=teammate)
    return done(request, _("Done."), to=reverse("tasks:team", args=[uid]))


def _shown(request: SignedInRequest, lead: Conversation) -> dict[str, Any]:
    team = Team.objects.filter(lead=lead).first()
    rows = Teammate.objects.filter(team=team).select_related("team", "conversation") if team else ()
    members = with_since([Member(row.team, row.conversation, row) for row in rows])
    requests = list(team.requests.order_by("-pk")[:REQUESTS]) if team else []
    stands = [(one.name, one.status, one.since and one.since.isoformat()) for one in members]
    asked = [(each.pk, each.state) for each in requests]
    known = hashlib.sha256(repr((stands, asked)).encode()).hexdigest()[:16]
    return {
        "lead": lead,
        "members": members,
        "requests": requests,
        "may_change": Conversation.objects.owned_by(request.user).contains(lead),
        "known": known,
    }


def _stop_all(request: SignedInRequest, lead: Conversation) -> HttpResponse:
    team = Team.objects.filter(lead=lead).first()
    if team is None:
        raise NotFound(_("There is no such team."))
    count = stop_team(actor=request.user, team=team)
    words = ngettext("%(count)d teammate is stopped.", "%(count)d teammates are stopped.", count)
    messages.success(request, words % {"count": count})
    return redirect("tasks:team", uid=lead.uid)


@login_required
@require_POST
def answer(request: SignedInRequest, question_uid: str) -> HttpResponse:
    asked = TeamRequest.objects.filter(
        person=request.user, team__in=Team.objects.visible_to(request.user), uid=question_uid
    ).first()
    if asked is None:
        raise NotFound(_("There is no such question."))
    text = request.POST.get("text", "")
    if not text.strip():
        raise Invalid(_("The answer is empty."), field="text", hint=_("Say something."))
    answer_as_person(actor=request.user, request=asked, approve=True, text=text)
    messages.success(request, _("Whoever asked is told."))
    return redirect("tasks:mine")
