"""The conversations and uploads of somebody who deleted her account go one by one, with their files.

Conversations at work are left for the next time: they were told to stop.
"""

from __future__ import annotations

import logging
from itertools import count

from django.db import transaction
from django.db.models import F, Q

from accounts.leaving import Part, only_hers, still_goes
from accounts.models import User

from .actions.conversations import remove_held
from .actions.stored_files import remove_files
from .models import Conversation, Run, StoredFile

logger = logging.getLogger(__name__)

AT_A_TIME = 50


def _hers(user: User) -> Q:
    alone = list(only_hers(user).values_list("pk", flat=True))
    return Q(owner=user) | Q(organisation__in=alone)


def _clear(user: User) -> int:
    hers = _hers(user)
    files = StoredFile.objects.filter(hers)[:AT_A_TIME]
    busy = Run.objects.filter(state=Run.State.RUNNING).values("conversation")
    # Those at the top first: what they started goes with them.
    at_the_top = F("parent").asc(nulls_first=True)
    resting = Conversation.objects.filter(hers).exclude(pk__in=busy).order_by(at_the_top, "pk")
    rows = resting.values_list("pk", "owner_id", "organisation_id")
    cleared = sum(_forgotten(user, file) for file in files)
    for begin in count(0, AT_A_TIME):
        some = list(rows[begin : begin + AT_A_TIME])
        removed = sum(_removed(user, *row) for row in some)
        # Behind as many as cannot be deleted there may be others.
        if removed or not some:
            break
    return cleared + removed


def _forgotten(user: User, file: StoredFile) -> int:
    with transaction.atomic():
        if still_goes(user, owner_id=file.owner_id, organisation_id=file.organisation_id):
            return remove_files([file])
    return 0


def _removed(user: User, pk: int, owner_id: int, organisation_id: int) -> bool:
    try:
        return _remove(user, pk, owner_id, organisation_id)
    except Exception:
        logger.exception("the conversation %d could not be deleted with its owner", pk)
        return False


def _remove(user: User, pk: int, owner_id: int, organisation_id: int) -> bool:
    with transaction.atomic():
        if not still_goes(user, owner_id=owner_id, organisation_id=organisation_id):
            return False
        held = Conversation.objects.select_for_update().filter(pk=pk).first()
        return held is not None and remove_held(held)


def _left(user: User) -> bool:
    hers = _hers(user)
    return any(rows.filter(hers).exists() for rows in (Conversation.objects, StoredFile.objects))


PART = Part(_clear, _left)
