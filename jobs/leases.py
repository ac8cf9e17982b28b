"""What is somebody's until a time, and anybody's after it: one way to say so for every kind of row.

Times are the database's own, so that hosts need not agree on theirs. A row keeps the time in
`lease_until`; who may take it and what becomes of what was lost is for its own subject to say.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Q
from django.db.models.expressions import Combinable
from django.db.models.functions import Now


def lease_end(seconds: float) -> Combinable:
    """So many seconds from now."""
    return Now() + timedelta(seconds=seconds)


def in_time() -> Q:
    """The lease holds."""
    return Q(lease_until__gte=Now())


def lapsed() -> Q:
    """It was taken, and its holder gave no sign of life for too long."""
    return Q(lease_until__lt=Now())
