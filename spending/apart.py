"""Counts model calls that belong to no conversation and no run: each is counted with what it takes at most
before it is made, and put right when it has ended. One whose process dies stays counted.

Who asks and why is the asker's part (`embeddings`, `brief`); calls about a conversation are `beside`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q

from accounts.models import User
from accounts.persons import charged_person
from harness.events import SpanModelRequestStart
from harness.ids import new_event_id
from harness.messages import Usage as Tokens

from .amounts import MONEY, units_of
from .applying import any_budget, without_replaced
from .models import MODEL_LENGTH, Budget, BudgetPeriod, Usage
from .periods import lock_periods
from .prices import cost_of, find_price, worst_cost
from .stops import release_for_room

NO_CONVERSATION = 0
"""No key of one."""


def hold_apart(begun: SpanModelRequestStart, *, organisation: int, user: int | None) -> str | None:
    """The id of a call that may now be made, counted with what it takes at most. None: a budget has no room
    for it, and nothing is counted. `user` is whose call it is; None: the organisation's."""
    tokens = begun.prompt_tokens_at_most + begun.output_tokens_at_most
    cost = worst_cost(begun)
    with transaction.atomic():
        # Before the budgets are looked for: one that comes into force meanwhile counts the row or is found.
        usage = Usage.objects.create(
            model_request_id=new_event_id(),
            organisation_id=organisation,
            user_id=user,
            charged_to_id=_person(user, organisation),
            server_keys=begun.server_keys,
            purpose=begun.purpose,
            provider=begun.provider,
            model=begun.model[:MODEL_LENGTH],
            input_tokens=begun.prompt_tokens_at_most,
            output_tokens=begun.output_tokens_at_most,
            cost=cost,
        )
        periods = _periods(usage)
        binding = without_replaced([period.budget for period in periods])
        for period in periods:
            if period.budget in binding and not _has_room(period, tokens, cost):
                usage.delete()
                return None
        for period in periods:
            _add(period, _amount(period, tokens, cost))
    return usage.model_request_id


def settle_apart(call: str, used: Tokens, *, milliseconds: int = 0) -> None:
    """It took so much. To be called once."""
    with transaction.atomic():
        usage = Usage.objects.select_for_update(of=("self",)).get(model_request_id=call)
        at_most, worst = usage.total_tokens, usage.cost
        for name in Usage.TOKENS:
            setattr(usage, name, getattr(used, name))
        usage.cost = cost_of(find_price(usage.provider, usage.model, used.prompt_tokens), used)
        # Its price was removed meanwhile. Unknown is not free: what it cost at most stays counted.
        counted = worst if usage.cost is None else usage.cost
        usage.milliseconds = milliseconds
        usage.save(update_fields=[*Usage.TOKENS, "cost", "milliseconds"])
        rooms = {}
        for period in _periods(usage):
            change = _amount(period, used.total_tokens, counted) - _amount(period, at_most, worst)
            change = max(change, -period.spent)  # it may have come into force meanwhile
            _add(period, change)
            rooms[period.pk] = period.room - change
        release_for_room(rooms)


def _person(user: int | None, organisation: int) -> int | None:
    account = User.objects.filter(pk=user).first() if user is not None else None
    return None if account is None else charged_person(account, organisation)


def _periods(usage: Usage) -> Sequence[BudgetPeriod]:
    """Of the budgets that count it, locked. Those for each person count on beside one that replaces them, for
    when it is lifted."""
    if not any_budget():
        return ()
    person, organisation = usage.charged_to_id, usage.organisation_id
    hers = {key for key in (usage.user_id, person) if key is not None}
    applying = (
        Q(scope=Budget.Scope.DEPLOYMENT)
        | Q(scope=Budget.Scope.ORGANISATION, organisation=organisation)
        | Q(scope=Budget.Scope.USER, organisation=organisation, user__in=hers)
    )
    if person is not None and usage.server_keys:
        applying |= Q(scope=Budget.Scope.PERSON) & (Q(user=None) | Q(user=person))
    found = Budget.objects.in_force().filter(applying).exclude(period=Budget.Period.RUN)
    budgets = list(found.order_by("scope", "pk"))
    return lock_periods(budgets, usage.created_at, person or 0, NO_CONVERSATION) if budgets else ()


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
