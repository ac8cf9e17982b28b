"""Runs that ask a person whether they go on: whose they are to decide, beside approvals and by mail."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.models import User
from conversations.models import Conversation
from conversations.models.share import DECIDING
from jobs.prepared import Prepared
from notices.waiting import NEWS, Item, in_turn, is_reachable

from .models import PipelineRun, PipelineRunQuerySet, StepRun

COUNTED = 100
"""A count ends here."""

_ASKED = Prepared(
    lambda given: StepRun.objects.filter(state=StepRun.State.ASKING).values_list("pk")[:1]
)
"""Whether anything is asked at all: mostly nothing is, and that is cheaper to ask than whether it is hers."""


def asking(user: User) -> PipelineRunQuerySet:
    """The runs that wait for a decision which she may make."""
    if user.is_service:
        return PipelineRun.objects.none()
    asked = StepRun.objects.filter(state=StepRun.State.ASKING).values("run")
    return PipelineRun.objects.going_on().filter(
        pk__in=asked, root__in=Conversation.objects.decidable_by(user).values("pk")
    )


def number_asking(user: User) -> str:
    """As a tab shows it; empty for none."""
    if _ASKED.first() is None:
        return ""
    number = asking(user)[: COUNTED + 1].count()
    if number > COUNTED:
        return f"{COUNTED}+"
    return str(number) if number else ""


def waiting(now: datetime) -> Iterator[tuple[Item, User]]:
    """For the mails about what waits: the owner's, and theirs whom she lets decide."""
    rows = StepRun.objects.filter(
        state=StepRun.State.ASKING,
        run__state=PipelineRun.State.RUNNING,
        started_at__gt=now - NEWS,
        started_at__lte=now - timedelta(minutes=1),
    )
    rows = rows.select_related("run__root")
    for step in in_turn(rows, whose="run__root__owner", since="started_at"):
        root = step.run.root
        item = Item(
            f"{step.run.uid}:{step.place}",
            root,
            _("Step %(name)s of a pipeline") % {"name": step.name},
            step.started_at,
            settings.AGENTSITE_BASE_URL + reverse("pipelines:run", args=[step.run.uid]),
            may_answer=True,
        )
        for user in _deciders(root):
            if is_reachable(user):
                yield item, user


def _deciders(root: Conversation) -> Iterator[User]:
    here = Conversation.objects.filter(pk=root.pk)
    named = Q(pk=root.owner_id) | Q(shares__conversation=root, shares__role__in=DECIDING)
    for user in User.objects.filter(named).distinct():
        if not user.is_service and here.decidable_by(user).exists():
            yield user
