"""What nobody else was ever shown of the agents of somebody who deleted her account: private ones, and drafts
of those that she had shared."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from django.db import transaction
from django.db.models import RestrictedError

from accounts.models import User

from .models import Agent, AgentVersion


def take(user: User) -> Callable[[], None]:
    """What something of others still rests on, such as an evaluation, stays."""
    hers = Agent.objects.filter(owner=user)
    private = list(hers.filter(private=True).values_list("pk", flat=True))
    drafts = AgentVersion.objects.filter(agent__in=hers.filter(private=False), draft=True)
    unseen = list(drafts.values_list("pk", flat=True))

    def behind() -> None:
        for pk in private:
            with suppress(RestrictedError), transaction.atomic():
                Agent.objects.filter(pk=pk).update(current=None)
                Agent.objects.filter(pk=pk).delete()
        for pk in unseen:
            with suppress(RestrictedError), transaction.atomic():
                AgentVersion.objects.filter(pk=pk).delete()

    return behind
