"""How long a request's idempotency key is remembered: longer than any client retries.

What is answered to a key is `v1.idempotency`'s.
"""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from conversations.models import RequestKey

KEPT = timedelta(days=1)


def prune() -> int:
    """Forget old keys; how many there were."""
    deleted, _rows = RequestKey.objects.filter(created_at__lt=timezone.now() - KEPT).delete()
    return deleted
