"""What a new conversation begins with where nobody chose: the person's own default, else the
organisation's, else the server's, else the one it was installed with.

What is archived, deleted or not for this person is passed over. Nothing goes by name: whatever
anybody adds, what others begin with stays. Setting them is `actions.preferences`'.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, Literal, TypeVar

from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext as _

from accounts.models import Organisation, User
from agents.models import Agent, Environment
from agents.seeds import AGENTS
from harness.errors import Invalid
from jobs.prepared import Given, Prepared

from .models import Defaults, Preference

T = TypeVar("T", Agent, Environment)


def default_agent(user: User, organisation: Organisation) -> Agent:
    """Raises Invalid where no agent is on offer."""
    agent = _chosen(_AGENTS, user, organisation)
    if agent is None:
        raise Invalid(
            _("There is no agent to work with."),
            field="agent",
            hint=_("A member of staff can add one in the administration."),
        )
    return agent


def default_environment(user: User, organisation: Organisation) -> Environment:
    """Raises Invalid where no environment is on offer."""
    environment = _chosen(_ENVIRONMENTS, user, organisation)
    if environment is None:
        raise Invalid(
            _("There is no environment to work in."),
            field="environment",
            hint=_("A member of staff can add one in the administration."),
        )
    return environment


class _Kind(Generic[T]):
    """What may be asked for of agents, or of environments."""

    def __init__(
        self,
        column: Literal["agent", "environment"],
        shipped: Iterable[str],
        offered: Callable[[Any, Any], QuerySet[T]],
    ) -> None:
        self.shipped = list(shipped)
        """By the names they were installed under, in our order."""

        def on_offer(given: Given) -> QuerySet[T]:
            return offered(given.user, given.organisation)

        self.by_key: Prepared[T] = Prepared(lambda given: on_offer(given).filter(pk=given.pk))
        self.by_seed: Prepared[T] = Prepared(
            lambda given: on_offer(given).filter(seed_name=given.name)
        )
        self.oldest: Prepared[T] = Prepared(
            lambda given: on_offer(given).order_by(
                F("organisation_id").asc(nulls_first=True), "pk"
            )[:1]
        )
        self.own = Prepared(
            lambda given: Preference.objects.filter(user=given.user).values_list(
                f"default_{column}_id"
            )
        )
        self.common = Prepared(
            lambda given: (
                Defaults.objects.filter(Q(organisation=given.organisation) | Q(organisation=None))
                .order_by(F("organisation_id").asc(nulls_last=True))
                .values_list(f"{column}_id")
            )
        )


_AGENTS: _Kind[Agent] = _Kind(
    "agent",
    AGENTS,
    lambda user, organisation: (
        Agent.objects.visible_to(user).usable_in(organisation).on_offer().select_related("current")
    ),
)
_ENVIRONMENTS: _Kind[Environment] = _Kind(
    "environment",
    ["default"],
    lambda user, organisation: (
        Environment.objects.visible_to(user).usable_in(organisation).on_offer()
    ),
)


def _chosen(kind: _Kind[T], user: User, organisation: Organisation) -> T | None:
    here = {"user": user.pk, "organisation": organisation.pk}
    for pk in _wanted(kind, user, organisation):
        if found := kind.by_key.first(pk=pk, **here):
            return found
    for name in kind.shipped:
        if found := kind.by_seed.first(name=name, **here):
            return found
    # None of them is anybody's newest.
    return kind.oldest.first(**here)


def _wanted(kind: _Kind[T], user: User, organisation: Organisation) -> Iterator[int]:
    yield from (pk for (pk,) in kind.own.all(user=user.pk) if pk)
    yield from (pk for (pk,) in kind.common.all(organisation=organisation.pk) if pk)
