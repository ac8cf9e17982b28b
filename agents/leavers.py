"""Private agents of somebody who deleted her account: nobody else could ever see them."""

from __future__ import annotations

from collections.abc import Callable

from django.db import transaction
from django.db.models import RestrictedError

from accounts.models import User

from .models import Agent


def take(user: User) -> Callable[[], None]:
    """One that something of others still rests on, such as an evaluation, stays, private for ever."""
    keys = list(Agent.objects.filter(owner=user, private=True).values_list("pk", flat=True))

    def behind() -> None:
        for pk in keys:
            try:
                with transaction.atomic():
                    Agent.objects.filter(pk=pk).update(current=None)
                    Agent.objects.filter(pk=pk).delete()
            except RestrictedError:
                continue

    return behind
