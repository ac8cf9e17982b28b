"""What a person who is new here does first, and what of it is done: a short list on the first page.

It is read off what stands, and goes when all is done or when she puts it away
(`conversations.actions.preferences`).
"""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Organisation, User
from accounts.permissions import may_manage
from agents.models import Agent
from conversations.kits import DEMO, Choice, choose_provider
from conversations.models import Conversation, Preference

EXAMPLE = gettext_noop("Plan and write two files for a reading list")
"""A request that is answered with a plan, two files and an edit; the demo knows it in English alone."""


@dataclass(frozen=True, slots=True)
class FirstStep:
    done: bool
    title: str
    help: str
    address: str = ""
    link: str = ""
    example: str = ""
    """Done with a conversation that is begun from here, in these words."""


def first_steps(user: User, organisation: Organisation, agent: Agent | None) -> list[FirstStep]:
    """Empty once all is done or put away. `agent`: whom she begins with where she does not choose."""
    if Preference.objects.filter(user=user, first_steps_put_away=True).exists():
        return []
    answers = _model_of(user, organisation, agent)
    steps = [_key(answers), _conversation(user, answers)]
    if may_manage(user, organisation) and organisation.personal_of_id is None:
        steps.append(_invitation(organisation))
    return [] if all(step.done for step in steps) else steps


def _model_of(user: User, organisation: Organisation, agent: Agent | None) -> Choice | None:
    config = agent.current.config if agent and agent.current else None
    return choose_provider(config, user, organisation) if config else None


def _key(answers: Choice | None) -> FirstStep:
    return FirstStep(
        done=bool(answers and answers.problem is None and answers.provider != DEMO),
        title=_("Give it a model"),
        help=_("Without a key of a model service, a demo that follows a handful of rules answers."),
        address=f"{reverse('accounts:keys')}#store",
        link=_("Add a key"),
    )


def _conversation(user: User, answers: Choice | None) -> FirstStep:
    return FirstStep(
        done=Conversation.objects.filter(owner=user).exists(),
        title=_("Begin a conversation"),
        help=_(
            "Write above what you need, or look at an example: the agent plans, asks before it writes, and"
            " shows what it changes."
        ),
        example=EXAMPLE if answers and answers.provider == DEMO else _(EXAMPLE),
    )


def _invitation(organisation: Organisation) -> FirstStep:
    others = organisation.memberships.count() > 1 or organisation.invitations.exists()
    return FirstStep(
        done=others,
        title=_("Invite somebody"),
        help=_("Colleagues share agents and keys, and review what needs a second look."),
        address=reverse("accounts:organisation"),
        link=_("Invite"),
    )
