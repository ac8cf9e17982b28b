"""The conversations and uploads of somebody who deleted her account go one by one, with their files.

Conversations at work are left for the next time: they were told to stop.
"""

from __future__ import annotations

import logging

from django.db import transaction
from django.db.models import Q

from accounts.leaving import Part, only_hers, still_goes
from accounts.models import User

from .actions.conversations import remove_held
from .actions.stored_files import remove_files
from .models import Conversation, Run, StoredFile

AT_A_TIME = 50
logger = logging.getLogger(__name__)


def _hers(user: User) -> Q:
    alone = list(only_hers(user).values_list("pk", flat=True))
    return Q(owner=user) | Q(organisation__in=alone)


def _clear(user: User) -> int:
    hers = _hers(user)
    files = StoredFile.objects.filter(hers)[:AT_A_TIME]
    busy = Run.objects.filter(state=Run.State.RUNNING).values("conversation")
    # Those at the top first: what they started goes with them.
    resting = Conversation.objects.filter(hers).exclude(pk__in=busy).order_by("parent", "pk")
    rows = list(resting.values_list("pk", "owner_id", "organisation_id")[:AT_A_TIME])
    return sum(_forgotten(user, file) for file in files) + sum(_removed(user, *row) for row in rows)


def _forgotten(user: User, file: StoredFile) -> int:
    with transaction.atomic():
        if still_goes(user, owner_id=file.owner_id, organisation_id=file.organisation_id):
            return remove_files([file])
    return 0


def _removed(user: User, pk: int, owner_id: int, organisation_id: int) -> bool:
    try:
        with transaction.atomic():
            goes = still_goes(user, owner_id=owner_id, organisation_id=organisation_id)
            held = Conversation.objects.select_for_update().filter(pk=pk)
            return goes and any(map(remove_held, held))
    except Exception:
        logger.exception("the conversation %d could not be deleted with its owner", pk)
        return False  # and keeps none of the others


def _left(user: User) -> bool:
    hers = _hers(user)
    return any(rows.filter(hers).exists() for rows in (Conversation.objects, StoredFile.objects))


PART = Part(_clear, _left)
