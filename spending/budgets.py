"""Reserves the worst case of a model call in every budget that applies, and settles it afterwards.

`log.append` calls this in its own transaction, so a call that no budget allows is never in the log.
Locks are taken in one order everywhere: conversation, budget, then periods from the widest scope to the
narrowest. Who may set a budget is `actions.budgets`' part, what becomes of a refused run `budgetstops`'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.persons import charged_person
from conversations.ancestry import root_of
from conversations.models import Conversation, Event
from conversations.projections import NotStored
from harness.errors import LimitReached
from harness.events import SpanModelRequestStart
from jobs.prepared import Prepared

from . import stops as budgetstops
from .amounts import MONEY, amount_text, units_of
from .models import Budget, BudgetPeriod, Reservation, Usage
from .prices import worst_cost

WARN_AT = 80
"""Percent of a budget from which people are warned."""
ALWAYS = date(1970, 1, 1)
"""When the only period of a budget without calendar begins."""


_ANY = Prepared(
    lambda given: Budget.objects.filter(removed_at=None).order_by().values_list("pk")[:1]
)


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


def _any_budget() -> bool:
    """Whether any budget is in force at all, whomever it caps."""
    return _ANY.exists()


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
    payer, found = _applying_to(conversation, server_keys=begun.server_keys)
    budgets = _without_replaced(found)
    if not budgets:
        return
    tokens = begun.prompt_tokens_at_most + begun.output_tokens_at_most
    cost = worst_cost(begun) if any(each.unit == MONEY for each in budgets) else None
    by_need: dict[int, list[BudgetPeriod]] = defaultdict(list)
    for period in _lock_periods(budgets, now, payer, root_of(conversation)):
        if period.conversation_id == conversation.pk:
            _begin_run(period, begun.turn)
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
    if not _any_budget():
        return
    # Those for each person count on beside one that replaces them, for when it is lifted.
    payer, budgets = _applying_to(
        conversation, server_keys=usage.server_keys, payer=usage.charged_to_id
    )
    held = {
        reservation.period_id: reservation
        for reservation in Reservation.objects.select_related("period").filter(
            model_request_id=usage.model_request_id
        )
    }
    if not (budgets or held):
        return
    counted = {reservation.period.budget_id for reservation in held.values()}
    others = [budget for budget in budgets if budget.pk not in counted]
    by_change: dict[tuple[int, int], list[BudgetPeriod]] = defaultdict(list)
    for period in _lock_periods(others, now, payer, root_of(conversation), and_also=held):
        given_back = held[period.pk].amount if period.pk in held else 0
        by_change[given_back, _used(period.budget, usage, given_back)].append(period)
    for (given_back, used), periods in by_change.items():
        if given_back or used:
            BudgetPeriod.objects.filter(pk__in=[period.pk for period in periods]).update(
                spent=F("spent") + used, reserved=F("reserved") - given_back
            )
    if held:
        Reservation.objects.filter(model_request_id=usage.model_request_id).delete()
        budgetstops.release_for_room(
            {
                period.pk: period.room + given_back - used
                for (given_back, used), periods in by_change.items()
                for period in periods
            }
        )


def _applying_to(
    conversation: Conversation, *, server_keys: bool, payer: int | None = None
) -> tuple[int, list[Budget]]:
    """Who is charged, and all that may cap it."""
    # Most installations have none, and each model call asks twice.
    if not _any_budget():
        return conversation.owner_id, []
    if payer is None:
        payer = charged_person(conversation.owner, conversation.organisation_id)
    found = Budget.objects.applying_to(conversation, payer, server_keys=server_keys)
    return payer, list(found)


def _without_replaced(budgets: Sequence[Budget]) -> list[Budget]:
    """Without what caps each person where there is one for just this person."""
    own = {
        (budget.unit, budget.period)
        for budget in budgets
        if budget.scope == Budget.Scope.PERSON and not budget.is_for_each
    }
    return [
        budget
        for budget in budgets
        if not (budget.is_for_each and (budget.unit, budget.period) in own)
    ]


def give_back_orphans(at_most: int = 100) -> None:
    """Return what calls of deleted conversations had reserved: nobody will settle them."""
    for orphan in Reservation.objects.filter(conversation=None).order_by("id")[:at_most]:
        with transaction.atomic():
            period = _locked(Q(pk=orphan.period_id)).first()
            if period is None or not Reservation.objects.filter(pk=orphan.pk).delete()[0]:
                continue
            BudgetPeriod.objects.filter(pk=period.pk).update(reserved=F("reserved") - orphan.amount)
            budgetstops.release_for_room({period.pk: period.room + orphan.amount})


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
    rows = [period.pk for period in _locked(Q(budget=budget, starts_on=first))]
    BudgetPeriod.objects.filter(pk__in=rows).update(limit=budget.limit)


# --- for people -----------------------------------------------------------------------------------


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


def standing(conversation: Conversation, *, now: datetime | None = None) -> list[Standing]:
    """How every budget stands that calls of this conversation count against, widest first."""
    if not _any_budget():
        return []
    payer = charged_person(conversation.owner, conversation.organisation_id)
    applying = Budget.objects.applying_to(conversation, payer, server_keys=True)
    found = _without_replaced(list(applying.select_related("organisation", "user")))
    return standings(found, now=now, conversation=conversation, person=payer)


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
        name=_name(budget, conversation),
        scope=Budget.Scope(budget.scope),
        unit=budget.unit,
        period=budget.period,
        limit=budget.limit,
        spent=row.spent if row else 0,
        reserved=row.reserved if row else 0,
        ends_on=ends_on(budget.period, now),
    )


def _name(budget: Budget, conversation: Conversation | None) -> str:
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


# --- periods --------------------------------------------------------------------------------------


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


def _lock_periods(
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
        for row in _locked(wanted)
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


def _begin_run(period: BudgetPeriod, turn: str) -> None:
    """Count anew where the conversation's next run has begun; what is of no run (a title) counts in the
    one before."""
    if turn in {"", period.turn}:
        return
    # Not nothing: the budget may be younger than the run.
    period.turn, period.spent = turn, _spent_in_run(period, turn)
    period.save(update_fields=["turn", "spent"])


def _locked(wanted: Q) -> QuerySet[BudgetPeriod]:
    rows = BudgetPeriod.objects.select_for_update(of=("self",), no_key=True)
    return rows.filter(wanted).select_related("budget").order_by("budget__scope", "budget_id", "pk")


# --- what a call costs ----------------------------------------------------------------------------


def _used(budget: Budget, usage: Usage, reserved: int) -> int:
    if budget.unit != MONEY:
        return usage.total_tokens
    if usage.cost is None:
        # Its price was removed meanwhile. Unknown is not free: what it cost at most is counted.
        return reserved
    return units_of(usage.cost)


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


# --- refusals -------------------------------------------------------------------------------------


def _full(period: BudgetPeriod, need: int, conversation: Conversation) -> CapReached:
    budget = _named(period)
    unit = budget.unit
    message = _(
        "The budget of %(limit)s %(period)s is reached (%(name)s): %(spent)s are spent, %(reserved)s"
        " are reserved for calls under way, and this call may take up to %(need)s."
    ) % {
        "limit": amount_text(unit, period.limit),
        "period": budget.get_period_display(),
        "name": _name(budget, conversation),
        "spent": amount_text(unit, period.spent),
        "reserved": amount_text(unit, period.reserved),
        "need": amount_text(unit, need),
    }
    return CapReached(message, hint=who_may_raise(budget), period=period, needed=need)


def _unpriced(
    period: BudgetPeriod, begun: SpanModelRequestStart, conversation: Conversation
) -> CapReached:
    budget = _named(period)
    message = _(
        "The model %(model)s of %(provider)s has no price, so the budget of %(limit)s %(period)s"
        " (%(name)s) cannot be kept with it."
    ) % {
        "model": begun.model,
        "provider": begun.provider,
        "limit": amount_text(budget.unit, period.limit),
        "period": budget.get_period_display(),
        "name": _name(budget, conversation),
    }
    hint = _("Staff can enter a price in the administration. Or choose another model.")
    return CapReached(message, hint=hint, period=period, needed=None)


def _named(period: BudgetPeriod) -> Budget:
    return Budget.objects.select_related("organisation", "user").get(pk=period.budget_id)
