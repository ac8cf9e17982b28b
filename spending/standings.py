"""How budgets stand, for people: what is left, what is near its end, and who may raise it.

Reads only. What counts in a budget is `budgets`' part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.persons import charged_person
from conversations.ancestry import root_of
from conversations.models import Conversation

from .amounts import amount_text
from .applying import any_budget, without_replaced
from .models import Budget, BudgetPeriod
from .models.budget import BudgetQuerySet
from .periods import ends_on, starts_on

WARN_AT = 80
"""Percent of a budget from which people are warned."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How one budget stands in its current period. Amounts are whole numbers of `unit`."""

    uid: str
    name: str
    scope: Budget.Scope
    unit: str
    period: str
    limit: int
    spent: int
    reserved: int
    ends_on: date | None
    """The first day of the next period; None for a budget without calendar."""

    @property
    def remaining(self) -> int:
        return max(0, self.limit - self.spent - self.reserved)

    @property
    def percent(self) -> int:
        """Spent and reserved of the limit, rounded down; at most 100."""
        if self.limit <= 0:
            return 100
        return min(100, 100 * (self.spent + self.reserved) // self.limit)

    @property
    def is_near(self) -> bool:
        return self.percent >= WARN_AT

    @property
    def is_personal(self) -> bool:
        return self.scope in {Budget.Scope.USER, Budget.Scope.PERSON}

    @property
    def is_reached(self) -> bool:
        return self.spent >= self.limit

    @property
    def limit_text(self) -> str:
        return amount_text(self.unit, self.limit)

    @property
    def spent_text(self) -> str:
        return amount_text(self.unit, self.spent)

    @property
    def reserved_text(self) -> str:
        return amount_text(self.unit, self.reserved)

    @property
    def remaining_text(self) -> str:
        return amount_text(self.unit, self.remaining)

    @property
    def period_text(self) -> str:
        return str(Budget.Period(self.period).label)


def applying_to_owner(conversation: Conversation) -> BudgetQuerySet:
    """All that its calls count against where its owner asks. What is another member's is for none of her
    pages."""
    owner = conversation.owner
    payer = charged_person(owner, conversation.organisation_id)
    applying = Budget.objects.applying_to(conversation, payer, server_keys=True)
    return applying.exclude(~Q(user__in={owner.pk, payer}), scope=Budget.Scope.USER)


def standing(conversation: Conversation, *, now: datetime | None = None) -> list[Standing]:
    """How every budget stands that calls of this conversation count against, widest first; for its owner."""
    if not any_budget():
        return []
    payer = charged_person(conversation.owner, conversation.organisation_id)
    applying = applying_to_owner(conversation).select_related("organisation", "user")
    found = without_replaced(list(applying))
    return standings(found, now=now, conversation=conversation, person=payer)


def standing_on_page(conversation: Conversation) -> list[Standing]:
    """The same for everybody who reads the conversation: where others do, without what is hers alone."""
    found = standing(conversation)
    if any(one.is_personal for one in found) and conversation.shares.exists():
        return [one for one in found if not one.is_personal]
    return found


def standings(
    budgets: Iterable[Budget],
    *,
    now: datetime | None = None,
    conversation: Conversation | None = None,
    person: int | None = None,
) -> list[Standing]:
    """The same for given budgets, in two queries. `conversation` is the one looked at from, `person`
    the key of whose share is told of budgets for each person."""
    now = now or timezone.now()
    found = list(budgets)
    if not found:
        return []
    root = None if conversation is None else root_of(conversation)
    first = {budget.pk: starts_on(budget.period, now) for budget in found}
    rows = {
        (row.budget_id, row.starts_on): row
        for row in BudgetPeriod.objects.filter(
            Q(user=None) | Q(user=person),
            Q(conversation=None) | Q(conversation=root),
            budget__in=found,
            starts_on__in=set(first.values()),
        )
    }
    return [
        _standing(budget, rows.get((budget.pk, first[budget.pk])), now, conversation)
        for budget in found
    ]


def _standing(
    budget: Budget, row: BudgetPeriod | None, now: datetime, conversation: Conversation | None
) -> Standing:
    return Standing(
        uid=budget.uid,
        name=name_of(budget, conversation),
        scope=Budget.Scope(budget.scope),
        unit=budget.unit,
        period=budget.period,
        limit=budget.limit,
        spent=row.spent if row else 0,
        reserved=row.reserved if row else 0,
        ends_on=ends_on(budget.period, now),
    )


def name_of(budget: Budget, conversation: Conversation | None) -> str:
    if budget.scope == Budget.Scope.CONVERSATION and conversation is not None:
        if budget.conversation_id == conversation.pk:
            return _("This conversation")
        return _("The conversation that started this one")
    return budget.whose


def who_may_raise(budget: Budget) -> str:
    """What a person at the cap can do about it."""
    if budget.period == Budget.Period.RUN:
        return _(
            "Send a message, or “Try again”: that begins another run. Whoever set the budget can raise it."
        )
    match budget.scope:
        case Budget.Scope.DEPLOYMENT | Budget.Scope.PERSON:
            return _("An administrator of this server can raise it.")
        case Budget.Scope.CONVERSATION:
            return _(
                "Whoever set it can raise it, and so can the owners and administrators of"
                " %(organisation)s; then the conversation goes on by itself."
            ) % {"organisation": budget.organisation}
    return _(
        "The owners and administrators of %(organisation)s can raise it; then the conversation"
        " goes on by itself."
    ) % {"organisation": budget.organisation}
