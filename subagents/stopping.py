"""Carries out what was asked for: subagents whose end somebody asked for are interrupted, each with its own.

Who may ask is `actions`' and `projection`'s. A child ends like any conversation that a person stops; below
it the same happens by its own log.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from conversations.log import append
from conversations.models import Conversation, Event
from conversations.wakes import wake
from harness.events import UserInterrupt
from harness.history import Entry
from jobs.apart import each_apart

from .models import Subagent

State = Subagent.State


def ask_for_end(rows: QuerySet[Subagent]) -> int:
    """Note that these shall end; how many of them were not asked before."""
    return rows.filter(state__in=[State.WAITING, State.RUNNING], stop_asked_at=None).update(
        stop_asked_at=timezone.now()
    )


def end_asked(parent: int) -> None:
    """End those of one conversation whose end was asked for."""
    for row in Subagent.objects.live().exclude(stop_asked_at=None).filter(parent=parent):
        end(row)


def end_left() -> None:
    """The same for all that a process that died left."""
    found = Subagent.objects.live().exclude(stop_asked_at=None).order_by("pk")[:100]
    each_apart(end, found, told="subagent %s could not be ended")


def end(row: Subagent) -> None:
    """Interrupt it. One that has not begun does not begin any more (`starting`)."""
    if row.child_id is None:
        return
    with transaction.atomic():
        child = Conversation.objects.select_for_update(no_key=True).filter(pk=row.child_id).first()
        if child is None or not child.may_be_interrupted:
            return
        if Event.objects.waiting_interrupts(child.pk).exists():
            return
        append(child.pk, [Entry.of(UserInterrupt())])
        wake(child.pk)
