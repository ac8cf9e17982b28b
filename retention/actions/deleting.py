"""Rules that are in force delete what they mean, each conversation looked at again under its lock.

Nobody acts here but the server. A process that dies in between leaves the rest to the next sweep.
"""

from __future__ import annotations

import logging
from itertools import count

from django.db import transaction

from audit.models import AuditEntry
from audit.record import write
from conversations.actions.conversations import remove_held
from conversations.ancestry import lock_tree
from retention.expiring import meant_by
from retention.models import RetentionRule

logger = logging.getLogger(__name__)

AT_A_TIME = 50
"""Conversations of one organisation that one sweep deletes."""


def delete_expired() -> int:
    """How many went. What cannot be deleted now waits for the next time, and nothing else waits for it."""
    rules = RetentionRule.objects.effective().select_related("organisation").order_by("pk")
    return sum(_delete_for(rule) for rule in rules)


def _delete_for(rule: RetentionRule) -> int:
    due = meant_by(rule).values_list("pk", flat=True)
    for begin in count(0, AT_A_TIME):
        some = list(due[begin : begin + AT_A_TIME])
        gone = sum(_tried(rule, pk) for pk in some)
        # Behind as many as cannot be deleted there may be others.
        if gone or not some:
            break
    return gone


def _tried(rule: RetentionRule, pk: int) -> bool:
    try:
        return _delete(rule, pk)
    except Exception:
        logger.exception("the conversation %d could not be deleted by its organisation's rule", pk)
        return False


def _delete(rule: RetentionRule, pk: int) -> bool:
    """Whether it went: the rule may be lifted, and somebody may have touched or pinned it meanwhile."""
    with transaction.atomic():
        # Whoever touches it, or what is below it, waits for these rows, or was here before.
        held = lock_tree(pk)
        current = RetentionRule.objects.effective().filter(pk=rule.pk, version=rule.version).first()
        if held is None or current is None or not meant_by(current, only=pk).exists():
            return False
        if not remove_held(held):
            return False
        write(
            AuditEntry.Action.RETENTION_DELETED,
            actor=None,
            organisation_id=rule.organisation_id,
            conversation_uid=held.uid,
            details={"days": rule.days, "only_archived": rule.only_archived},
        )
    return True
