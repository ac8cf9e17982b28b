"""The form in which a conversation begins: on its own page, and folded above the list.

It shows what may be chosen and what is chosen where nobody did. Beginning is
`conversations.actions.beginning`'s part.
"""

from __future__ import annotations

from typing import Any

from accounts.models import Organisation
from accounts.requests import SignedInRequest
from agents.models import Agent, Environment
from agents.namesakes import told_apart
from chat.forms import NewConversationForm
from chat.modelpicker import named_by, picker, wish_of
from conversations.actions.attachments import attachments_of
from conversations.defaults import default_agent, default_environment
from harness.agentconfig import Features

from .attaching import FILES, attaching


def start_form(
    request: SignedInRequest,
    *,
    organisation: Organisation | None = None,
    agent: str = "",
    bound: bool = True,
) -> NewConversationForm:
    """Filled with what was posted, if it was to it (`bound`), else with what begins where nobody chose:
    `agent`, by its id, if it is on offer. In the organisation one works in if none is given."""
    organisation = organisation or request.organisation
    form = NewConversationForm(
        request.POST if bound and request.method == "POST" else None,
        user=request.user,
        organisation=organisation,
    )
    if not form.is_bound:
        form.initial = _initial(request, form, organisation, agent)
    return form


def start_context(request: SignedInRequest, form: NewConversationForm) -> dict[str, Any]:
    """What `chat/_start.html` shows."""
    fields: Any = form.fields
    chosen = form["agent"].value()
    uid = getattr(chosen, "uid", chosen)
    agents = told_apart(fields["agent"].queryset)
    agent = next((each for each in agents if each.uid == uid), None)
    environments = list(fields["environment"].queryset)
    return {
        "form": form,
        "groups": _grouped(agents),
        "chosen_agent": uid,
        "agent": agent,
        **_models(request, agent),
        "environments": environments,
        "vaults": fields["vaults"].queryset,
        "chosen_vaults": form["vaults"].value() or [],
        "attach": attaching(
            attachments_of(
                actor=request.user,
                organisation=request.organisation,
                uids=request.POST.getlist(FILES),
            ),
            max((each.upload_limit for each in environments), default=0),
        ),
    }


def _initial(
    request: SignedInRequest, form: NewConversationForm, organisation: Organisation, agent_uid: str
) -> dict[str, Any]:
    """What begins where nobody chose; the switches are the agent's own."""
    fields: Any = form.fields
    agents: list[Agent] = list(fields["agent"].queryset)
    wanted = request.GET.get("agent", agent_uid)
    agent = next((each for each in agents if each.uid == wanted), None)
    if agent is None and agents:
        agent = default_agent(request.user, organisation)
    environment: Environment | None = None
    if fields["environment"].queryset:
        environment = default_environment(request.user, organisation)
    features = agent.current.config.features if agent and agent.current else Features()
    return {
        "agent": agent.uid if agent else None,
        "environment": environment.uid if environment else None,
        "message": request.GET.get("message", ""),
        **features.model_dump(),
    }


def _models(request: SignedInRequest, agent: Agent | None) -> dict[str, Any]:
    """The agent's own model in words; where one was picked and the form came back, the whole fold."""
    if agent is None or agent.current is None:
        return {"model_groups": None}
    own, user, organisation = agent.current.config, request.user, request.organisation
    shown: dict[str, Any] = {
        "model_words": named_by(own),
        "model_groups": None,
    }
    wish = wish_of(request.POST)
    if wish is not None:
        wanted = {"effort": wish.effort}
        if wish.provider:
            wanted |= {"provider": wish.provider, "model": wish.model}
        shown |= picker(user, organisation, own, own.model_copy(update=wanted))
    return shown


def _grouped(agents: list[Agent]) -> list[tuple[str, list[Agent]]]:
    """The organisation's own agents, then the server's."""
    own = [agent for agent in agents if agent.organisation_id is not None]
    shared = [agent for agent in agents if agent.organisation_id is None]
    return [(name, group) for name, group in (("own", own), ("shared", shared)) if group]
