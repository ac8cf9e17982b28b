"""A conversation that goes takes no spending along: a call whose end nobody has heard is counted before.

Its process is gone, or its run broke and nobody had it try again. Calls beside are counted by who asks. What
such counting begins of a budget goes with whom it was for.

Conversations are locked before budgets: where several go at once, all of them before the first is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models.signals import post_delete, pre_delete
from django.dispatch import receiver

from accounts.happenings import Happening
from accounts.models import Organisation, User
from conversations.models import Conversation, Event
from conversations.partials import take_partials
from harness.events import SpanModelRequestStart
from harness.lostrequests import lost_end

from .models import BudgetPeriod
from .recording import record_request_end


def hold_first(
    happening: Happening,
    *,
    actor: User | None,
    organisation: Organisation | None,
    details: Mapping[str, Any],
) -> None:
    """A listener of `accounts.happenings`, in the transaction of the deletion and before it."""
    rows = Conversation.objects.select_for_update(of=("self",)).order_by("pk").values_list("pk")
    match happening:
        case Happening.ORGANISATION_DELETED:
            list(rows.filter(organisation__uid=details["deleted"]))
        case Happening.ACCOUNT_DELETED if actor is None or actor.uid != details["deleted"]:
            list(rows.filter(owner__uid=details["deleted"]))  # her own she only closes
        case _:
            pass


@receiver(pre_delete, sender=Conversation, dispatch_uid="spending.deletions")
def _count(instance: Conversation, **_kwargs: Any) -> None:
    log = Event.objects.filter(conversation=instance)
    start = log.filter(type="span.model_request_start").order_by("-seq").first()
    if start is None or not isinstance(begun := start.value, SpanModelRequestStart):
        return
    behind = log.filter(seq__gt=start.seq)
    # One at a time is open: whatever ended since is that one.
    if not behind.filter(type="span.model_request_end").exists():
        log_behind = (row.value for row in behind.order_by("seq"))
        ended = lost_end(start.uid, begun, log_behind, take_partials(instance.pk))
        record_request_end(instance, begun, ended, run=None)


@receiver(post_delete, sender=Conversation, dispatch_uid="spending.deletions.of_run")
def _end_runs(instance: Conversation, **_kwargs: Any) -> None:
    BudgetPeriod.objects.filter(conversation=instance.pk).delete()


@receiver(post_delete, sender=User, dispatch_uid="spending.deletions.of_person")
def _end_shares(instance: User, **_kwargs: Any) -> None:
    BudgetPeriod.objects.filter(user=instance.pk).delete()
