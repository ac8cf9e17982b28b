"""The conversations and uploads of somebody who deleted her account go one by one, with their files.

Conversations at work are left for the next time: they were told to stop.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction
from django.db.models import Q

from accounts.leaving import Organisations, Part
from accounts.models import User

from .actions.conversations import remove_held
from .actions.stored_files import remove_files
from .models import Conversation, Run, StoredFile
from .models.conversation import ConversationQuerySet

AT_A_TIME = 50


def _hers(user: User, organisations: Organisations) -> Q:
    return Q(owner=user) | Q(organisation__in=organisations)


def _clear(user: User, organisations: Organisations) -> int:
    hers = _hers(user, organisations)
    files = StoredFile.objects.filter(hers)[:AT_A_TIME]
    return remove_files(files) + sum(_removed(Conversation.objects.filter(hers)))


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
    hers = _hers(user, organisations)
    return any(rows.filter(hers).exists() for rows in (Conversation.objects, StoredFile.objects))


PART = Part(_clear, _left)
