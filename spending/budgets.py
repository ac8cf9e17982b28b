"""Reserves the worst case of a model call in every budget that applies, and settles it afterwards.

`log.append` calls this in its own transaction, so a call that no budget allows is never in the log.
Who may set a budget is `actions.budgets`' part, which budgets apply `applying`'s, their rows and locks
`periods`', what becomes of a refused run `stops`'.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _

from conversations.ancestry import root_of
from conversations.models import Conversation
from conversations.projections import NotStored
from harness.errors import LimitReached
from harness.events import SpanModelRequestStart

from . import stops as budgetstops
from .amounts import MONEY, amount_text, units_of
from .applying import any_budget, applying_to, without_replaced
from .models import Budget, BudgetPeriod, Reservation, Usage
from .periods import begin_run, lock_periods, locked
from .prices import worst_cost
from .standings import name_of, who_may_raise


class CapReached(LimitReached, NotStored):
    """One budget has no room for one call; the call was not made."""

    code = "budget_reached"

    def __init__(
        self, message: str, *, hint: str, period: BudgetPeriod, needed: int | None
    ) -> None:
        super().__init__(message, hint=hint)
        self.period = period
        self.needed = needed
        """What the call would have reserved; None when its model has no price."""

    def note(self, conversation_id: int) -> None:
        budgetstops.note(conversation_id, self.period, needed=self.needed)


def reserve(
    conversation: Conversation,
    model_request_id: str,
    begun: SpanModelRequestStart,
    *,
    now: datetime,
) -> None:
    """Hold back what this call may cost at most, in each budget of its conversation.

    Raises `CapReached` for the first that has no room; the caller's transaction is to be rolled back
    then. For money the dearest rate counts that may apply. A model without a price is
    refused by budgets in money, unless AGENTSITE_BUDGETS_ALLOW_UNPRICED.
    """
    payer, found = applying_to(conversation, server_keys=begun.server_keys)
    budgets = without_replaced(found)
    if not budgets:
        return
    tokens = begun.prompt_tokens_at_most + begun.output_tokens_at_most
    cost = worst_cost(begun) if any(each.unit == MONEY for each in budgets) else None
    by_need: dict[int, list[BudgetPeriod]] = defaultdict(list)
    for period in lock_periods(budgets, now, payer, root_of(conversation)):
        if period.conversation_id == conversation.pk:
            begin_run(period, begun.turn)
        need = units_of(cost) if period.budget.unit == MONEY and cost is not None else tokens
        if period.budget.unit == MONEY and cost is None:
            if not settings.AGENTSITE_BUDGETS_ALLOW_UNPRICED:
                raise _unpriced(period, begun, conversation)
        elif need:
            by_need[need].append(period)
    for need, periods in by_need.items():
        roomy = BudgetPeriod.objects.filter(
            pk__in=[period.pk for period in periods],
            limit__gte=F("spent") + F("reserved") + need,
        )
        if roomy.update(reserved=F("reserved") + need) < len(periods):
            full = next(period for period in periods if period.room < need)
            raise _full(full, need, conversation)
    Reservation.objects.bulk_create(
        Reservation(
            model_request_id=model_request_id,
            period=period,
            conversation=conversation,
            amount=need,
        )
        for need, periods in by_need.items()
        for period in periods
    )


def settle(conversation: Conversation, usage: Usage, *, now: datetime) -> None:
    """Give back what the call had reserved and count what it used, in the period it began in.

    A budget that came into force while the call was under way counts it too. What a service
    counted beyond the reservation is recorded as it is.
    """
    if not any_budget():
        return
    # Those for each person count on beside one that replaces them, for when it is lifted.
    payer, budgets = applying_to(
        conversation,
        server_keys=usage.server_keys,
        asker=usage.user_id,
        payer=usage.charged_to_id,
    )
    reservations = Reservation.objects.filter(model_request_id=usage.model_request_id)
    known = dict(reservations.values_list("period_id", "period__budget_id"))
    if not (budgets or known):
        return
    others = [budget for budget in budgets if budget.pk not in known.values()]
    locked_periods = lock_periods(others, now, payer, root_of(conversation), and_also=known)
    # Read anew under the locks: who lifts a budget has given back all that is held in it.
    held = dict(reservations.values_list("period_id", "amount")) if known else {}
    by_change: dict[tuple[int, int], list[BudgetPeriod]] = defaultdict(list)
    for period in locked_periods:
        if period.pk in held or period.pk not in known:
            given_back = held.get(period.pk, 0)
            by_change[given_back, _used(period.budget, usage, given_back)].append(period)
    for (given_back, used), periods in by_change.items():
        if given_back or used:
            BudgetPeriod.objects.filter(pk__in=[period.pk for period in periods]).update(
                spent=F("spent") + used, reserved=F("reserved") - given_back
            )
    if held:
        reservations.delete()
        budgetstops.release_for_room(
            {
                period.pk: period.room + given_back - used
                for (given_back, used), periods in by_change.items()
                for period in periods
            }
        )


def give_back_orphans(at_most: int = 100) -> None:
    """Return what calls of deleted conversations had reserved: nobody will settle them."""
    for orphan in Reservation.objects.filter(conversation=None).order_by("id")[:at_most]:
        with transaction.atomic():
            period = locked(Q(pk=orphan.period_id)).first()
            if period is None or not Reservation.objects.filter(pk=orphan.pk).delete()[0]:
                continue
            BudgetPeriod.objects.filter(pk=period.pk).update(reserved=F("reserved") - orphan.amount)
            budgetstops.release_for_room({period.pk: period.room + orphan.amount})


def _used(budget: Budget, usage: Usage, reserved: int) -> int:
    if budget.unit != MONEY:
        return usage.total_tokens
    if usage.cost is None:
        # Its price was removed meanwhile. Unknown is not free: what it cost at most is counted.
        return reserved
    return units_of(usage.cost)


# --- refusals -------------------------------------------------------------------------------------


def _full(period: BudgetPeriod, need: int, conversation: Conversation) -> CapReached:
    """The log keeps it for all who read the conversation: figures of one person's budget are not told."""
    budget = _named(period)
    unit = budget.unit
    if budget.is_personal:
        message = _(
            "A personal budget (%(name)s, %(period)s) has no room for this call, which may take up to"
            " %(need)s. The person it caps finds its figures under “Budgets”."
        )
    elif period.spent < period.limit:
        message = _(
            "The next call could go over the budget of %(limit)s %(period)s (%(name)s): %(spent)s are"
            " spent, %(reserved)s are reserved for calls under way, and it may take up to %(need)s."
        )
    else:
        message = _(
            "The budget of %(limit)s %(period)s is reached (%(name)s): %(spent)s are spent, %(reserved)s"
            " are reserved for calls under way, and this call may take up to %(need)s."
        )
    message %= {
        "limit": amount_text(unit, period.limit),
        "period": budget.get_period_display(),
        "name": name_of(budget, conversation),
        "spent": amount_text(unit, period.spent),
        "reserved": amount_text(unit, period.reserved),
        "need": amount_text(unit, need),
    }
    return CapReached(message, hint=who_may_raise(budget), period=period, needed=need)


def _unpriced(
    period: BudgetPeriod, begun: SpanModelRequestStart, conversation: Conversation
) -> CapReached:
    budget = _named(period)
    if budget.is_personal:
        message = _(
            "The model %(model)s of %(provider)s has no price, so a personal budget in money (%(name)s,"
            " %(period)s) cannot be kept with it."
        )
    else:
        message = _(
            "The model %(model)s of %(provider)s has no price, so the budget of %(limit)s %(period)s"
            " (%(name)s) cannot be kept with it."
        )
    message %= {
        "model": begun.model,
        "provider": begun.provider,
        "limit": amount_text(budget.unit, period.limit),
        "period": budget.get_period_display(),
        "name": name_of(budget, conversation),
    }
    hint = _("Staff can enter a price in the administration. Or choose another model.")
    return CapReached(message, hint=hint, period=period, needed=None)


def _named(period: BudgetPeriod) -> Budget:
    return Budget.objects.select_related("organisation", "user").get(pk=period.budget_id)
