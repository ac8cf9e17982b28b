"""Remembers which conversations a budget stopped, and marks those that may go on.

A mark is a row, so a process that dies forgets nobody; the job that resumes them is
`actions.budgets.resume_stopped`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import User
from jobs.dispatch import dispatch

from .models import Budget, BudgetPeriod, BudgetStop, Conversation

RESUME = "conversations.resume_stopped"

AT_A_TIME = 20
"""Conversations that one settled call lets go on; the next call sees to more."""


def note(conversation_id: int, *, period_id: int, needed: int | None) -> None:
    """The budget of this period refused a call. For a transaction of its own: the refusal rolled
    back the one it came from.

    If there is room by now, the conversation is marked at once: whoever made the room could not
    know of it.
    """
    with transaction.atomic():
        # As whoever raises the limit does: so one of us sees what the other did.
        budgets = Budget.objects.select_for_update(of=("self",), no_key=True)
        budget = budgets.filter(periods=period_id).order_by("pk").first()
        rows = BudgetPeriod.objects.select_for_update(no_key=True).filter(pk=period_id)
        period = rows.first()
        if budget is None or period is None:
            return
        fits = needed is not None and period.room >= needed
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


def forget(conversation: Conversation) -> None:
    """It goes on, for whatever reason."""
    BudgetStop.objects.filter(conversation=conversation).delete()


def look_again(conversation: Conversation) -> None:
    """It came to rest at a budget: if it was marked meanwhile, it may go on at once."""
    if BudgetStop.objects.released().filter(conversation=conversation).exists():
        _resume_soon()


def release_all(budget: Budget, actor: User) -> None:
    """The budget was raised or lifted: whoever it stopped may try again."""
    held = BudgetStop.objects.held().filter(period__budget=budget)
    if held.update(released_at=timezone.now(), released_by=actor):
        _resume_soon()


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
    for pk, period, needed in stops.values_list("pk", "period_id", "needed")[:AT_A_TIME]:
        if needed is not None and needed <= left[period]:
            left[period] -= needed
            chosen.append(pk)
    if chosen:
        BudgetStop.objects.held().filter(pk__in=chosen).update(released_at=timezone.now())
        _resume_soon()


def _resume_soon() -> None:
    transaction.on_commit(partial(dispatch, RESUME))
