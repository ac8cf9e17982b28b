"""Runs know who reads along as it was when they began: what they are told as somebody is let in meanwhile, so
that a run that knows answers the next words.

Who may read is `models.share`'s part; what depends on it asks there for each run.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from django.db import transaction

from harness.events import AppEvent
from harness.history import Entry

from .ancestry import TreeOf
from .log import append
from .models import Conversation, Run


class ReadersJoined(AppEvent):
    """Somebody may read along from here on who could not before."""

    plain: ClassVar[bool] = True

    type: str = "x.readers_joined"

    def outdates(self) -> bool:
        return True


def tell_runs(root: Conversation) -> None:
    """Of somebody who was let in, in the transaction that does so and holds the conversation; those of agents
    below right after it, since no two of a tree are held at once but from above."""
    running = Run.objects.filter(conversation__in=TreeOf(root.pk), state=Run.State.RUNNING)
    for pk in running.order_by("conversation").values_list("conversation", flat=True):
        said = [Entry.of(ReadersJoined())]
        if pk == root.pk:
            append(pk, said)
        else:
            transaction.on_commit(partial(append, pk, said), robust=True)
