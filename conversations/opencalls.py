"""The calls of a conversation that have no answer yet, found by the rows about them.

What an event does to a call is `harness.history`'s to say, for the loop and for everybody else; this
reads no more of the log than it needs for that. Who may answer one is for the actions to say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Exists, OuterRef, QuerySet

from harness.events import ANSWERS, CALLS
from harness.history import History, OpenCall

from .models import Conversation, Event


def open_calls(conversation: Conversation | int, uids: Iterable[str]) -> dict[str, OpenCall]:
    """Those of these calls that are open, in the order they were made."""
    about = Event.objects.filter(conversation=conversation).about(set(uids))
    return {call.uid: call for call in History(row.entry() for row in about).unanswered()}


def open_call(conversation: Conversation | int, uid: str) -> OpenCall | None:
    """None for one that was answered, and for what is no call."""
    return open_calls(conversation, [uid]).get(uid)


def answered(conversation: Conversation | int, uids: Collection[str]) -> set[str]:
    """Those of these calls that have their answer."""
    answers = Event.objects.filter(
        conversation=conversation, subject__in=list(uids), type__in=ANSWERS
    )
    return set(answers.values_list("subject", flat=True))


def unanswered_after(log: QuerySet[Event], seq: int) -> QuerySet[Event]:
    """The calls behind this place in the log that have no answer."""
    answers = Event.objects.filter(
        conversation=OuterRef("conversation"), subject=OuterRef("uid"), type__in=ANSWERS
    )
    return log.filter(~Exists(answers), type__in=CALLS, seq__gt=seq)
