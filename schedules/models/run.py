"""Runs of standing orders: one row for each due time, webhook, ended run or press of a button that was to
begin one, with what became of it. On `/v1` those that began or failed to are *deployment runs*.

That a due time is begun at most once, whoever looks and however often, is a constraint here.
"""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from agents.models import AgentVersion
from conversations.models import Conversation
from harness.ids import new_id
from spending.amounts import money

from .order import StandingOrder


def new_run_id() -> str:
    return new_id("drun")


PARTS = {
    "agent": _("version of the agent"),
    "model": _("model"),
    "prompt": _("instructions"),
    "tools": _("tools"),
    "rules": _("rules"),
    "skills": _("skills"),
    "environment": _("environment"),
    "sandbox": _("sandbox policy"),
    "task": _("what it is to do"),
}
"""What a fingerprint consists of."""


class OrderRunQuerySet(models.QuerySet["OrderRun"]):
    def visible_to(self, user: User) -> Self:
        """Those of the person's own orders."""
        return self.filter(order__owner=user, order__organisation__memberships__user=user)

    def open(self) -> Self:
        """Those that have not ended: at work, or at rest until somebody answers."""
        return self.filter(state=OrderRun.State.STARTED)

    def queued(self) -> Self:
        return self.filter(state=OrderRun.State.QUEUED).order_by("pk")

    def attempted(self) -> Self:
        """Those that began, or tried to: what the public API calls runs."""
        return self.exclude(state__in=[OrderRun.State.QUEUED, OrderRun.State.SKIPPED])


class OrderRun(models.Model):
    class Trigger(models.TextChoices):
        SCHEDULE = "schedule", _("its time")
        WEBHOOK = "webhook", _("a webhook")
        MAIL = "mail", _("a mail")
        AFTER = "after", _("the end of another run")
        QUEUE = "queue", _("its queue")
        MANUAL = "manual", _("by hand")

    class State(models.TextChoices):
        QUEUED = "queued", _("about to begin")
        STARTED = "started", _("at work")
        SUCCEEDED = "succeeded", _("ended well")
        FAILED = "failed", _("failed")
        SKIPPED = "skipped", _("left out")

    class Skip(models.TextChoices):
        MISSED = "missed", _("the server was not there at that time")
        OVERLAP = "overlap", _("an earlier run was not done")
        PAUSED = "paused", _("the schedule was paused meanwhile")
        PERSON = "person", _("its owner put it off")
        EMPTY = "empty", _("nothing was in its queue")
        CHAIN = "chain", _("too many runs began each other")

    uid = models.CharField(max_length=40, unique=True, default=new_run_id, editable=False)
    order = models.ForeignKey(StandingOrder, on_delete=models.CASCADE, related_name="runs")
    agent_version = models.ForeignKey(AgentVersion, on_delete=models.RESTRICT, related_name="+")
    trigger = models.CharField(max_length=10, choices=Trigger)
    due_at = models.DateTimeField(null=True)
    """Of `SCHEDULE`: the due time, before any spread."""
    key = models.CharField(max_length=100, blank=True)
    """Of `WEBHOOK`: the sender's id of the message; of `MAIL`: a digest of its id; of `AFTER`: the id of the
    run that ended."""
    depth = models.PositiveSmallIntegerField(default=0)
    """How many runs, each by the end of the last, led here."""
    payload = models.JSONField(null=True)
    """Of `WEBHOOK` and `MAIL`: what was sent, as its templates are filled."""
    attachments = models.JSONField(default=list)
    """Of `MAIL`: pairs of the id of a stored file and its path, as it came with."""
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    skip = models.CharField(max_length=10, choices=Skip, blank=True)
    skipped = models.PositiveIntegerField(default=0)
    """With `MISSED`: how many due times this row stands for; `due_at` is the last."""
    conversation = models.ForeignKey(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    session_uid = models.CharField(max_length=40, blank=True)
    """Of the conversation; stays when that is deleted."""
    error = models.CharField(max_length=60, blank=True)
    """What it could not begin for, as a type of the public API, or the code of what it failed with."""
    words = models.CharField(max_length=500, blank=True)
    """Why it failed or was left out; of one that ended well, how its answer begins."""
    cost = models.DecimalField(max_digits=20, decimal_places=8, null=True)
    """US dollars, when it had ended; null: unknown for lack of a price, or nothing was asked of a model."""
    fingerprint = models.JSONField(default=dict)
    """What it was set up with, part by part; empty: it did not begin."""
    drift = models.JSONField(default=list)
    """Pairs of a part that differs from the last run that began, and of what is told of it."""
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    is_settled = models.BooleanField(default=True)
    """False from its end until what follows from that is done (`actions.ending`)."""

    objects = OrderRunQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        verbose_name = _("run of a schedule")
        verbose_name_plural = _("runs of schedules")
        constraints = [
            models.UniqueConstraint(
                fields=["order", "due_at"],
                condition=Q(due_at__isnull=False),
                name="order_run_once_a_due_time",
            ),
            models.UniqueConstraint(
                fields=["order", "trigger", "key"],
                condition=~Q(key=""),
                name="order_run_once_a_key",
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(state="queued"), name="order_run_queued"),
            models.Index(fields=["id"], condition=Q(is_settled=False), name="order_run_unsettled"),
            models.Index(F("order"), F("id").desc(), name="order_run_list"),
            models.Index(
                fields=["order"],
                condition=Q(state="started"),
                name="order_run_open",
            ),
        ]

    def __str__(self) -> str:
        return self.uid

    @property
    def cost_text(self) -> str:
        """As the brief has it; empty: not known."""
        return "" if self.cost is None else money(self.cost)

    @property
    def drift_words(self) -> list[str]:
        """What was another thing than at the last run, for people."""
        return [f"{PARTS.get(part, part)}{': ' if told else ''}{told}" for part, told in self.drift]

    @property
    def began(self) -> bool:
        return self.session_uid != ""

    @property
    def waits_for_person(self) -> bool:
        return bool(
            self.state == self.State.STARTED
            and self.conversation is not None
            and self.conversation.waits_for_person
        )
