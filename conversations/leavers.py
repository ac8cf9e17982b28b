"""The conversations of somebody who deleted her account go one by one, each in a transaction of its own.

Those at work are left for the next time: they were told to stop.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction
from django.db.models import Q

from accounts.leaving import Organisations, Part
from accounts.models import User

from .actions.conversations import remove_held
from .models import Conversation, Run
from .models.conversation import ConversationQuerySet

AT_A_TIME = 50


def _of(user: User, organisations: Organisations) -> ConversationQuerySet:
    return Conversation.objects.filter(Q(owner=user) | Q(organisation__in=organisations))


def _clear(user: User, organisations: Organisations) -> int:
    return sum(_removed(_of(user, organisations)))


def _removed(conversations: ConversationQuerySet) -> Iterator[bool]:
    busy = Run.objects.filter(state=Run.State.RUNNING).values("conversation")
    # Those at the top first: what they started goes with them.
    resting = conversations.exclude(pk__in=busy).order_by("parent", "pk")
    for pk in resting.values_list("pk", flat=True)[:AT_A_TIME]:
        with transaction.atomic():
            held = Conversation.objects.select_for_update().filter(pk=pk).first()
            if held is not None:
                yield remove_held(held)


def _left(user: User, organisations: Organisations) -> bool:
    return _of(user, organisations).exists()


PART = Part(_clear, _left)
