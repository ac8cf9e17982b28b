"""Would this call be allowed, for this agent and person, and by which rule? Nothing runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from accounts.reviewing import reviewed_organisations
from accounts.staff import has_staff_permission
from agents.models import Agent
from approvals.models import Approval
from approvals.policyrules import rules_of_new
from conversations.judging import history_of, judging_kit, kit_of
from conversations.models import Conversation
from harness.errors import Invalid, InvalidToolInput, NotFound
from harness.history import History
from harness.kit import Kit
from harness.policy import Judgement
from harness.rules import AskTerms
from harness.tools import Effect, check_input

VIEW_ANY = "conversations.view_conversation"
SAFER = 5


@dataclass(frozen=True, slots=True)
class Simulation:
    verdict: Literal["allow", "ask", "deny"]
    reason: str
    """Which rule decides, in words; empty when nothing stands in the way."""
    level: str = ""
    rule: str = ""
    """Its uid, where it is kept in a table."""
    terms: AskTerms | None = None
    """Who would have to answer, where it asks."""
    fault: str = ""
    """Where the input breaks the tool's schema: then the call fails even if it is allowed."""
    safer: tuple[str, ...] = ()
    """Tools that only read and would be allowed unasked."""


def simulate_call(
    *,
    actor: User,
    tool: str,
    input: Mapping[str, Any],  # noqa: A002 - the name of the thing
    conversation: Conversation | None = None,
    agent: Agent | None = None,
    organisation: Organisation | None = None,
    person: User | None = None,
) -> Simulation:
    """What a run would be told of this call now, in a conversation, or in a new one of `person` (the
    actor, unless she reviews the organisation) with an agent.

    Raises NotFound for what the actor may not see, Invalid naming the field.
    """
    if not isinstance(input, Mapping):
        raise Invalid(_("The input is not a JSON object."), field="input")
    if conversation is not None:
        kit, history = _in_conversation(actor, conversation)
    elif agent is not None and organisation is not None:
        kit, history = _with_agent(actor, agent, organisation, person or actor)
    else:
        raise Invalid(
            _("Say where: a conversation, or an agent and an organisation."), field="conversation"
        )
    judgement = kit.judge(tool, history, arguments=input)
    return _simulation(kit, history, tool, input, judgement)


def _in_conversation(actor: User, conversation: Conversation) -> tuple[Kit, History]:
    own = Conversation.objects.owned_by(actor).filter(pk=conversation.pk).exists()
    asked = Approval.objects.visible_to(actor).filter(conversation=conversation).exists()
    if not (own or asked or has_staff_permission(actor, VIEW_ANY)):
        raise NotFound(_("There is no such conversation."))
    held = Conversation.objects.select_related("agent_version__agent").get(pk=conversation.pk)
    return kit_of(held), history_of(held)


def _with_agent(
    actor: User, agent: Agent, organisation: Organisation, person: User
) -> tuple[Kit, History]:
    staff = has_staff_permission(actor, VIEW_ANY)
    if not staff and not Organisation.objects.visible_to(actor).filter(pk=organisation.pk).exists():
        raise NotFound(_("There is no such organisation."))
    seen = Agent.objects.all() if staff else Agent.objects.visible_to(actor)
    usable = seen.usable_in(organisation).filter(pk=agent.pk, current__isnull=False)
    if not usable.exists() or agent.current is None:
        raise NotFound(_("There is no such agent."))
    member = organisation.memberships.filter(user=person).exists()
    if person.pk != actor.pk and not (
        member and (staff or reviewed_organisations(actor).filter(pk=organisation.pk).exists())
    ):
        raise NotFound(_("There is no such person."))
    config = agent.current.config
    rules = rules_of_new(organisation.pk, agent.pk, person.pk)
    return judging_kit(config, rules), History(features=config.features)


def _simulation(
    kit: Kit, history: History, name: str, given: Mapping[str, Any], judgement: Judgement
) -> Simulation:
    tool = kit.tools_in(history).get(name)
    fault = ""
    if tool is not None:
        try:
            check_input(tool, given)
        except InvalidToolInput as problem:
            fault = problem.message
    return Simulation(
        verdict=judgement.verdict.value,
        reason=judgement.reason,
        level=judgement.level.word if judgement.level is not None else "",
        rule=judgement.rule,
        terms=judgement.terms,
        fault=fault,
        safer=() if judgement.verdict.value == "allow" else _safer(kit, history, name),
    )


def _safer(kit: Kit, history: History, name: str) -> tuple[str, ...]:
    policy, left_out = kit.policy_in(history), kit.left_out(history)
    found = [
        other.name
        for other in kit.tools_in(history).values()
        if other.name not in {name, *left_out}
        and other.effect is Effect.READ
        and not other.external
        and policy.offers(other, history.features)
        and kit.judge(other.name, history, arguments={}).verdict.value == "allow"
    ]
    return tuple(sorted(found)[:SAFER])
