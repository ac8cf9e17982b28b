"""Remembers which conversations a budget stopped, and marks those that may go on.

A mark is a row, so a process that dies forgets nobody; the job that resumes them is
`actions.budgets.resume_stopped`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from django.db import transaction
from django.db.models import F, Q, QuerySet, Sum
from django.utils import timezone

from accounts.models import User
from conversations.models import Conversation
from jobs.dispatch import dispatch

from .models import Budget, BudgetPeriod, BudgetStop
from .periods import locked

RESUME = "spending.resume_stopped"

AT_A_TIME = 20
"""Conversations that one settled call lets go on; the next call sees to more."""


def note(conversation_id: int, refused_in: BudgetPeriod, *, needed: int | None) -> None:
    """The budget of this period refused a call. For a transaction of its own: the refusal rolled
    back the one it came from, and with it the period, if that had begun there.

    If there is room by now, the conversation is marked at once: whoever made the room could not
    know of it.
    """
    with transaction.atomic():
        # As whoever raises the limit does: so one of us sees what the other did.
        budgets = Budget.objects.select_for_update(of=("self",), no_key=True)
        budget = budgets.filter(pk=refused_in.budget_id).first()
        if budget is None:
            return
        period, _begun = BudgetPeriod.objects.select_for_update(no_key=True).get_or_create(
            budget=budget,
            starts_on=refused_in.starts_on,
            user=refused_in.user,
            conversation=refused_in.conversation,
            defaults={"limit": budget.limit},
        )
        # Another run would begin: what is left of this one is nothing to go on with by itself.
        fits = needed is not None and period.room >= needed and budget.period != Budget.Period.RUN
        free = fits or budget.removed_at is not None
        BudgetStop.objects.update_or_create(
            conversation_id=conversation_id,
            defaults={
                "period": period,
                "needed": needed,
                "released_at": timezone.now() if free else None,
                "released_by": None,
            },
        )
        # It may have been let go on for room in another budget, of which it takes none.
        _resume_soon()


def forget(conversation: Conversation) -> None:
    """It goes on, for whatever reason."""
    BudgetStop.objects.filter(conversation=conversation).delete()


def look_again(conversation: Conversation) -> None:
    """It came to rest at a budget: if it was marked meanwhile, it may go on at once."""
    if BudgetStop.objects.released().filter(conversation=conversation).exists():
        _resume_soon()


def release_all(budget: Budget, actor: User) -> None:
    """The budget was raised or lifted: whoever it stopped may try again."""
    held = _untouched(BudgetStop.objects.held().filter(period__budget=budget))
    _release([stop.pk for stop in held], actor)


def release_for_room(rooms: Mapping[int, int]) -> None:
    """Calls ended and left this much room in these periods, which the caller has locked: the oldest
    stops that fit in may go on."""
    fitting = Q()
    for period, room in rooms.items():
        if room > 0:
            fitting |= Q(period=period, needed__lte=room)
    if not fitting:
        return
    left = dict(rooms)
    chosen = []
    stops = BudgetStop.objects.held().filter(fitting).order_by("id")
    stops = stops.exclude(period__budget__period=Budget.Period.RUN)
    for stop in _untouched(stops)[:AT_A_TIME]:
        if stop.needed is not None and stop.needed <= left[stop.period_id]:
            left[stop.period_id] -= stop.needed
            chosen.append(stop.pk)
    _release(chosen)


def take_away(conversation: Conversation) -> None:
    """It does not wait for room any more; what it was to take is the next ones'."""
    forget(conversation)
    _resume_soon()


def pass_on_room() -> None:
    """Let others go on in room that somebody was let go on for and did not take: its run broke before it
    asked a model, or its person has left, or it is deleted. Nobody else hears of that."""
    room = F("period__limit") - F("period__spent") - F("period__reserved")
    fitting = BudgetStop.objects.held().filter(needed__lte=room)
    fitting = fitting.exclude(period__budget__period=Budget.Period.RUN).order_by("period")
    for pk in fitting.values_list("period", flat=True).distinct():
        with transaction.atomic():
            period = locked(Q(pk=pk)).first()
            if period is not None:
                promised = BudgetStop.objects.released().filter(period=pk)
                taken: int = promised.aggregate(all=Sum("needed", default=0))["all"]
                release_for_room({pk: period.room - taken})


def _untouched(stops: QuerySet[BudgetStop]) -> QuerySet[BudgetStop]:
    """Locked, without those that somebody is at: that conversation is going on, and waits with its stop for
    the periods that we hold; or it is being noted anew, by somebody who sees what room there is."""
    return stops.select_for_update(of=("self",), no_key=True, skip_locked=True)


def _release(chosen: Sequence[int], actor: User | None = None) -> None:
    if chosen:
        stops = BudgetStop.objects.held().filter(pk__in=chosen)
        stops.update(released_at=timezone.now(), released_by=actor)
        _resume_soon()


def _resume_soon() -> None:
    transaction.on_commit(partial(dispatch, RESUME))
