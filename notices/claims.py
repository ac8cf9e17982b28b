"""Who tells a person of what: one process, once for each channel."""

from __future__ import annotations

from django.db.models import F

from accounts.models import User
from harness.ids import new_id

from .models import WaitNotice
from .waiting import MOST_TRIES, Item


def claim_items(user: User, items: list[Item], *, channel: str) -> tuple[str, list[Item]]:
    """A batch, and those among `items` that this process, and no other, is to tell of by this channel. It is
    committed with the caller's transaction, or at once."""
    batch = new_id(channel)
    refused = WaitNotice.objects.filter(
        user=user,
        channel=channel,
        subject__in=[item.subject for item in items],
        batch="",
        tries__lt=MOST_TRIES,
    )
    refused.update(batch=batch, tries=F("tries") + 1)
    WaitNotice.objects.bulk_create(
        [
            WaitNotice(
                user=user,
                conversation=item.conversation,
                subject=item.subject,
                channel=channel,
                batch=batch,
            )
            for item in items
        ],
        ignore_conflicts=True,
    )
    mine = set(WaitNotice.objects.filter(batch=batch).values_list("subject", flat=True))
    return batch, [item for item in items if item.subject in mine]
