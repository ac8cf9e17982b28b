"""The page on which a conversation begins."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounts.current_organisation import require_shown_organisation
from accounts.forms import add_error
from accounts.requests import SignedInRequest
from agents.models import Agent, Environment
from agents.namesakes import told_apart
from chat.forms import NewConversationForm
from conversations.actions.attachments import attachments_of
from conversations.actions.beginning import begin_conversation
from conversations.defaults import default_agent, default_environment
from conversations.models import Conversation
from harness.agentconfig import Features
from harness.errors import Conflict, Declined, Invalid, LimitReached, NotFound, TooMany

from .attachments import FILES, attaching


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: SignedInRequest) -> HttpResponse:
    """The form; a POST makes the conversation, and posts the first message if there is one.

    With `agent` in the query the form shows that agent chosen, with its own switches.
    """
    form = _form(request)
    too_many: TooMany | None = None
    status = 200
    if request.method == "POST":
        try:
            require_shown_organisation(request)
            if form.is_valid():
                return redirect(_begin(request, form))
            status = 422
        except (Conflict, LimitReached) as problem:
            add_error(form, problem)
            status = 409
        except (Invalid, NotFound) as problem:
            add_error(form, _named(problem))
            status = 422
        except TooMany as problem:
            add_error(form, problem)
            too_many = problem
            status = 429
    fields: Any = form.fields
    agents = told_apart(fields["agent"].queryset)
    chosen = form["agent"].value()
    context = {
        "form": form,
        "groups": _grouped(agents),
        "chosen_agent": getattr(chosen, "uid", chosen),
        "environments": fields["environment"].queryset,
        "vaults": fields["vaults"].queryset,
        "chosen_vaults": form["vaults"].value() or [],
        "attach": attaching(
            attachments_of(
                actor=request.user,
                organisation=request.organisation,
                uids=request.POST.getlist(FILES),
            ),
            max((each.upload_limit for each in fields["environment"].queryset), default=0),
        ),
    }
    response = render(request, "chat/new.html", context, status=status)
    if too_many:
        response["Retry-After"] = str(too_many.retry_after)
    return response


def _begin(request: SignedInRequest, form: NewConversationForm) -> Conversation:
    return begin_conversation(
        actor=request.user,
        organisation=request.organisation,
        agent=form.cleaned_data["agent"],
        environment=form.cleaned_data["environment"],
        features=form.features(),
        vault_uids=form.vault_uids(),
        text=form.cleaned_data["message"],
        files=request.POST.getlist(FILES),
    )


def _form(request: SignedInRequest) -> NewConversationForm:
    form = NewConversationForm(
        request.POST if request.method == "POST" else None,
        user=request.user,
        organisation=request.organisation,
    )
    if not form.is_bound:
        form.initial = _initial(request, form)
    return form


def _initial(request: SignedInRequest, form: NewConversationForm) -> dict[str, Any]:
    """What begins where nobody chose; the switches are the agent's own."""
    fields: Any = form.fields
    agents: list[Agent] = list(fields["agent"].queryset)
    wanted = request.GET.get("agent")
    agent = next((each for each in agents if each.uid == wanted), None)
    if agent is None and agents:
        agent = default_agent(request.user, request.organisation)
    environment: Environment | None = None
    if fields["environment"].queryset:
        environment = default_environment(request.user, request.organisation)
    features = agent.current.config.features if agent and agent.current else Features()
    return {
        "agent": agent.uid if agent else None,
        "environment": environment.uid if environment else None,
        "message": request.GET.get("message", ""),
        **features.model_dump(),
    }


def _grouped(agents: list[Agent]) -> list[tuple[str, list[Agent]]]:
    """The organisation's own agents, then the server's."""
    own = [agent for agent in agents if agent.organisation_id is not None]
    shared = [agent for agent in agents if agent.organisation_id is None]
    return [(name, group) for name, group in (("own", own), ("shared", shared)) if group]


def _named(problem: Declined) -> Declined:
    """The message's refusal under the name its field has here; what is wrong with its files, too."""
    if isinstance(problem, Invalid) and (problem.field or "").partition("[")[0] in {
        "content",
        FILES,
    }:
        problem.field = "message"
    return problem
