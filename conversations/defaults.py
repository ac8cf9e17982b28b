"""What a new conversation begins with where nobody chose: the person's own default, else the
organisation's, else the server's, else the one it was installed with.

What is archived, deleted or not for this person is passed over. Nothing goes by name: whatever
anybody adds, what others begin with stays. Setting them is `actions.preferences`'.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeVar

from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from harness.errors import Invalid

from .models import Agent, Defaults, Environment, Preference
from .seeds import AGENTS

T = TypeVar("T", Agent, Environment)


def default_agent(user: User, organisation: Organisation) -> Agent:
    """Raises Invalid where no agent is on offer."""
    offered = Agent.objects.visible_to(user).usable_in(organisation).on_offer()
    agent = _chosen(offered.select_related("current"), "agent", user, organisation)
    if agent is None:
        raise Invalid(
            _("There is no agent to work with."),
            field="agent",
            hint=_("A member of staff can add one in the administration."),
        )
    return agent


def default_environment(user: User, organisation: Organisation) -> Environment:
    """Raises Invalid where no environment is on offer."""
    offered = Environment.objects.visible_to(user).usable_in(organisation).on_offer()
    environment = _chosen(offered, "environment", user, organisation)
    if environment is None:
        raise Invalid(
            _("There is no environment to work in."),
            field="environment",
            hint=_("A member of staff can add one in the administration."),
        )
    return environment


def _chosen(
    offered: QuerySet[T],
    kind: Literal["agent", "environment"],
    user: User,
    organisation: Organisation,
) -> T | None:
    for pk in _wanted(kind, user, organisation):
        if found := offered.filter(pk=pk).first():
            return found
    # The ones that were installed, in our order; then the oldest. None of them is anybody's newest.
    shipped = list(AGENTS) if kind == "agent" else ["default"]
    for name in shipped:
        if found := offered.filter(seed_name=name).first():
            return found
    shared_first = F("organisation_id").asc(nulls_first=True)
    return offered.order_by(shared_first, "pk").first()


def _wanted(
    kind: Literal["agent", "environment"], user: User, organisation: Organisation
) -> Iterator[int]:
    own = Preference.objects.filter(user=user).values_list(f"default_{kind}_id", flat=True)
    yield from (pk for pk in own if pk)
    rows = Defaults.objects.filter(Q(organisation=organisation) | Q(organisation=None))
    rows = rows.order_by(F("organisation_id").asc(nulls_last=True))
    yield from (pk for pk in rows.values_list(f"{kind}_id", flat=True) if pk)
