"""The day, month or run that a budget counts in: when it begins, with what, and its locked rows.

Locks are taken in one order everywhere: conversation, budget, then periods from the widest scope to the
narrowest. What a call takes from a period is `budgets`' part.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from django.db.models import Q, QuerySet, Sum
from django.utils import timezone

from conversations.models import Conversation, Event

from .amounts import MONEY, units_of
from .models import Budget, BudgetPeriod, Usage

ALWAYS = date(1970, 1, 1)
"""When the only period of a budget without calendar begins."""


def starts_on(period: str, now: datetime) -> date:
    """The first day of the period that `now` lies in, in the site's time zone."""
    today = timezone.localdate(now)
    match period:
        case Budget.Period.DAY:
            return today
        case Budget.Period.MONTH:
            return today.replace(day=1)
    return ALWAYS


def ends_on(period: str, now: datetime) -> date | None:
    """The first day of the next period, if there is one."""
    first = starts_on(period, now)
    match period:
        case Budget.Period.DAY:
            return first + timedelta(days=1)
        case Budget.Period.MONTH:
            return (first + timedelta(days=31)).replace(day=1)
    return None


def begin_period(budget: Budget, *, now: datetime) -> None:
    """Begin the current period of a budget that is being made, with what its subject has spent in it.

    For a transaction that keeps usage rows from being written meanwhile.
    """
    if budget.period == Budget.Period.RUN:
        return  # each conversation's begins with its next call
    first = starts_on(budget.period, now)
    if budget.is_for_each:
        BudgetPeriod.objects.bulk_create(
            BudgetPeriod(
                budget=budget, starts_on=first, user_id=person, limit=budget.limit, spent=spent
            )
            for person, spent in _spent_by_each(budget, first)
        )
        return
    BudgetPeriod.objects.create(
        budget=budget, starts_on=first, limit=budget.limit, spent=_spent_since(budget, first)
    )


def set_limit(budget: Budget, *, now: datetime) -> None:
    """Give the current period the budget's limit as it is now; the caller holds its row."""
    first = starts_on(budget.period, now)
    # Of each person and of each run there are rows of their own, where something was spent.
    if not (budget.is_for_each or budget.period == Budget.Period.RUN):
        BudgetPeriod.objects.bulk_create(
            [BudgetPeriod(budget=budget, starts_on=first, limit=budget.limit)],
            ignore_conflicts=True,
        )
    rows = [period.pk for period in locked(Q(budget=budget, starts_on=first))]
    BudgetPeriod.objects.filter(pk__in=rows).update(limit=budget.limit)


def lock_periods(
    budgets: Sequence[Budget],
    now: datetime,
    payer: int,
    root: int,
    and_also: Collection[int] = (),
) -> list[BudgetPeriod]:
    """The current periods of `budgets`, of those for each person `payer`'s, of those for each run that of
    the conversation `root`, and those with the given keys, locked, widest first."""
    first = {budget.pk: starts_on(budget.period, now) for budget in budgets}
    wanted = Q(pk__in=list(and_also)) | Q(
        Q(user=None) | Q(user=payer),
        Q(conversation=None) | Q(conversation=root),
        budget__in=list(first),
        starts_on__in=set(first.values()),
    )

    # A budget's own row is locked before the first period and never after one: who changes a limit
    # holds that row and waits for the periods.
    begun = set(BudgetPeriod.objects.filter(wanted).values_list("budget_id", "starts_on"))
    missing = {pk for pk, start in first.items() if (pk, start) not in begun}
    if missing:
        _begin_periods(missing, first, payer, root)
    return [
        row
        for row in locked(wanted)
        if row.pk in and_also or first.get(row.budget_id) == row.starts_on
    ]


def _begin_periods(missing: Collection[int], first: dict[int, date], payer: int, root: int) -> None:
    """A new day or month has come, or a conversation's first run under a budget for each: nothing is
    spent in it, and its limit is today's."""
    # Under the budget's lock, so that a limit that is being changed is not missed.
    current = Budget.objects.select_for_update(no_key=True).filter(pk__in=missing)
    BudgetPeriod.objects.bulk_create(
        [
            BudgetPeriod(
                budget=budget,
                starts_on=first[budget.pk],
                user_id=payer if budget.is_for_each else None,
                conversation_id=root if budget.period == Budget.Period.RUN else None,
                limit=budget.limit,
            )
            for budget in current.order_by("scope", "pk")
        ],
        ignore_conflicts=True,
    )


def begin_run(period: BudgetPeriod, turn: str) -> None:
    """Count anew where the conversation's next run has begun; what is of no run (a title) counts in the
    one before."""
    if turn in {"", period.turn}:
        return
    # Not nothing: the budget may be younger than the run.
    period.turn, period.spent = turn, _spent_in_run(period, turn)
    period.save(update_fields=["turn", "spent"])


def locked(wanted: Q) -> QuerySet[BudgetPeriod]:
    rows = BudgetPeriod.objects.select_for_update(of=("self",), no_key=True)
    return rows.filter(wanted).select_related("budget").order_by("budget__scope", "budget_id", "pk")


# --- what was spent -------------------------------------------------------------------------------


def _spent_by_each(budget: Budget, first: date) -> list[tuple[int, int]]:
    """What each person has spent on the server's keys since, by the person's key."""
    usage = Usage.objects.order_by().filter(server_keys=True, charged_to__isnull=False)
    if first != ALWAYS:
        usage = usage.filter(created_at__gte=_begin_of(first))
    persons = usage.values_list("charged_to", flat=True).distinct()
    return [(person, _sum(budget, usage.filter(charged_to=person))) for person in persons]


def _spent_since(budget: Budget, first: date) -> int:
    usage = Usage.objects.order_by()
    match budget.scope:
        case Budget.Scope.PERSON:
            usage = usage.filter(server_keys=True, charged_to=budget.user_id)
        case Budget.Scope.ORGANISATION:
            usage = usage.filter(organisation=budget.organisation_id)
        case Budget.Scope.USER:
            hers = Q(user=budget.user_id) | Q(charged_to=budget.user_id)
            usage = usage.filter(hers, organisation=budget.organisation_id)
        case Budget.Scope.CONVERSATION:
            usage = usage.filter(conversation__in=_with_descendants(budget.conversation_id))
    if first != ALWAYS:
        usage = usage.filter(created_at__gte=_begin_of(first))
    return _sum(budget, usage)


def _spent_in_run(period: BudgetPeriod, turn: str) -> int:
    began = Event.objects.filter(conversation=period.conversation_id, uid=turn)
    since = began.values_list("created_at", flat=True).first()
    if since is None:
        return 0
    usage = Usage.objects.order_by().filter(
        conversation__in=_with_descendants(period.conversation_id), created_at__gte=since
    )
    if period.budget.scope == Budget.Scope.PERSON:
        usage = usage.filter(server_keys=True)
    return _sum(period.budget, usage)


def _begin_of(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _sum(budget: Budget, usage: QuerySet[Usage]) -> int:
    if budget.unit == MONEY:
        cost: Decimal = usage.aggregate(all=Sum("cost", default=Decimal(0)))["all"]
        return units_of(cost)
    sums = usage.aggregate(**{name: Sum(name, default=0) for name in Usage.TOKENS})
    return sum(sums.values())


def _with_descendants(conversation_id: int | None) -> list[int]:
    found: list[int] = []
    generation = [] if conversation_id is None else [conversation_id]
    while generation:
        found += generation
        children = Conversation.objects.filter(parent__in=generation)
        generation = list(children.values_list("pk", flat=True))
    return found
