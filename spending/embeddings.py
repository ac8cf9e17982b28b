"""What a service of embeddings is asked counts in the budgets of the server, the organisation and the person,
and stands in usage as `embedding`.

Such a call belongs to no conversation and no run. It is counted with what it takes at most before it is made,
and put right when it has ended: one whose process dies stays counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from accounts.models import User
from accounts.persons import charged_person
from harness.events import SpanModelRequestStart
from harness.ids import new_event_id
from harness.messages import Usage as Tokens
from memory.embedding.paying import Payer

from .amounts import MONEY, units_of
from .applying import any_budget, without_replaced
from .models import Budget, BudgetPeriod, Usage
from .periods import lock_periods
from .prices import cost_of, find_price, worst_cost
from .stops import release_for_room

PURPOSE = "embedding"
PROVIDER = "embeddings"
"""Of the service in usage and in the table of prices."""
NO_CONVERSATION = 0
"""No key of one."""


class EmbeddingsCounted:
    """By `memory.embedding.paying.Counting`."""

    def hold(self, payer: Payer, *, model: str, tokens: int) -> str | None:
        begun = SpanModelRequestStart(
            purpose=PURPOSE, provider=PROVIDER, model=model, prompt_tokens_at_most=tokens
        )
        person = _person(payer)
        with transaction.atomic():
            periods = _periods(payer.organisation, payer.user, person, timezone.now())
            cost = worst_cost(begun)
            for period in periods:
                if not _has_room(period, tokens, cost):
                    return None
            usage = Usage.objects.create(
                model_request_id=new_event_id(),
                organisation_id=payer.organisation,
                user_id=payer.user,
                charged_to_id=person,
                server_keys=True,
                purpose=PURPOSE,
                provider=PROVIDER,
                model=model,
                input_tokens=tokens,
                cost=cost,
            )
            for period in periods:
                _add(period, _amount(period, tokens, cost))
        return usage.model_request_id

    def settle(self, call: str, tokens: int) -> None:
        with transaction.atomic():
            usage = Usage.objects.select_for_update(of=("self",)).get(model_request_id=call)
            at_most, worst = usage.input_tokens, usage.cost
            used = Tokens(input_tokens=tokens)
            usage.input_tokens = tokens
            usage.cost = cost_of(find_price(usage.provider, usage.model, tokens), used)
            usage.save(update_fields=["input_tokens", "cost"])
            rooms = {}
            for period in _periods(
                usage.organisation_id, usage.user_id, usage.charged_to_id, usage.created_at
            ):
                change = _amount(period, tokens, usage.cost) - _amount(period, at_most, worst)
                change = max(change, -period.spent)  # it may have come into force meanwhile
                _add(period, change)
                rooms[period.pk] = period.room - change
            release_for_room(rooms)


def _person(payer: Payer) -> int | None:
    account = User.objects.filter(pk=payer.user).first() if payer.user is not None else None
    return None if account is None else charged_person(account, payer.organisation)


def _periods(
    organisation: int, user: int | None, person: int | None, now: datetime
) -> Sequence[BudgetPeriod]:
    """Of the budgets that count it, locked."""
    if not any_budget():
        return ()
    hers = {key for key in (user, person) if key is not None}
    applying = (
        Q(scope=Budget.Scope.DEPLOYMENT)
        | Q(scope=Budget.Scope.ORGANISATION, organisation=organisation)
        | Q(scope=Budget.Scope.USER, organisation=organisation, user__in=hers)
    )
    if person is not None:
        applying |= Q(scope=Budget.Scope.PERSON) & (Q(user=None) | Q(user=person))
    found = Budget.objects.in_force().filter(applying).exclude(period=Budget.Period.RUN)
    budgets = without_replaced(list(found.order_by("scope", "pk")))
    return lock_periods(budgets, now, person or 0, NO_CONVERSATION) if budgets else ()


def _has_room(period: BudgetPeriod, tokens: int, cost: Decimal | None) -> bool:
    if period.budget.unit == MONEY and cost is None:
        return bool(settings.AGENTSITE_BUDGETS_ALLOW_UNPRICED)
    return period.room >= _amount(period, tokens, cost)


def _amount(period: BudgetPeriod, tokens: int, cost: Decimal | None) -> int:
    if period.budget.unit != MONEY:
        return tokens
    return 0 if cost is None else units_of(cost)


def _add(period: BudgetPeriod, amount: int) -> None:
    if amount:
        BudgetPeriod.objects.filter(pk=period.pk).update(spent=F("spent") + amount)
