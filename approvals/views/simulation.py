"""“Would this call be allowed?” for an agent or a conversation, without anything being run."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.models import User
from accounts.requests import SignedInRequest
from agents.models import Agent
from agents.namesakes import told_apart
from approvals.actions.simulation import Simulation, simulate_call
from conversations.models import Conversation
from harness.errors import Declined, Invalid, NotFound
from tools_app.catalogue import all_tools
from wire.givenjson import read_object


@require_safe
@login_required
def simulate(request: SignedInRequest) -> HttpResponse:
    """Asked by GET: it changes nothing, and its address can be sent to somebody."""
    context: dict[str, Any] = {
        "view": "simulate",
        "agents": told_apart(Agent.objects.visible_to(request.user).on_offer()),
        "tools": sorted(all_tools()),
        "typed": request.GET,
    }
    status = 200
    if request.GET.get("tool"):
        try:
            context["outcome"] = _simulated(request)
        except Declined as refusal:
            context["refusal"] = refusal
            status = 422
    return render(request, "approvals/simulate.html", context, status=status)


def _simulated(request: SignedInRequest) -> Simulation:
    tool = request.GET["tool"].strip()
    given = _input(request.GET.get("input", ""))
    if uid := request.GET.get("conversation", "").strip().replace("\0", ""):
        conversation = Conversation.objects.filter(uid=uid).first()
        if conversation is None:
            raise NotFound(_("There is no such conversation."))
        return simulate_call(actor=request.user, tool=tool, input=given, conversation=conversation)
    agent = Agent.objects.filter(uid=request.GET.get("agent", "").replace("\0", "")).first()
    if agent is None:
        raise Invalid(
            _("Say where: a conversation or an agent."), field="agent", hint=_("Choose one.")
        )
    return simulate_call(
        actor=request.user,
        tool=tool,
        input=given,
        agent=agent,
        organisation=request.organisation,
        person=_person(request.GET.get("person", "").strip().replace("\0", "")),
    )


def _person(name: str) -> User | None:
    if not name:
        return None
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        raise NotFound(_("There is no such person."))
    return found


def _input(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    return read_object(text, field="input", hint=_('Write an object, as {"command": "ls"}.'))
