"""Subagents: what an agent asked conversations below its own to do, one row for each time it asked.

The row outlives turns, processes and restarts. Who moves it from state to state is `starting` and `ending`;
the work itself is an ordinary conversation (`child`).
"""

from __future__ import annotations

from typing import Any, Self

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from conversations.models import BackgroundCommand, Conversation, Wake
from harness.events import WAITS_FOR_WORKER
from harness.ids import new_id


def new_subagent_id() -> str:
    return new_id("sub")


class Tree(models.Model):
    """Of all that descends from one conversation of a person's: its lock decides who may begin."""

    root = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    asks = models.JSONField(default=dict)
    """Who of it waits for a person, as the root's log says it (`asks`); empty: nobody."""

    class Meta:
        verbose_name = _("tree of conversations")
        verbose_name_plural = _("trees of conversations")

    def __str__(self) -> str:
        return str(self.root_id)


class SubagentQuerySet(models.QuerySet["Subagent"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(parent__in=Conversation.objects.visible_to(user))

    def live(self) -> Self:
        """Asked for and not at their end."""
        return self.filter(state__in=LIVE)

    def working(self) -> Self:
        return self.filter(state=Subagent.State.RUNNING)

    def orphaned(self) -> Self:
        """At work by their row, while their conversation is gone, or rests and nothing is on its way that
        would wake it."""
        child = OuterRef("child")
        below = Subagent.objects.live().filter(parent=child)
        rests = Q(
            child__status=Conversation.Status.IDLE, child__owes_run=False, child__queued_count=0
        ) & ~Q(child__stop_reason__in=["requires_action", WAITS_FOR_WORKER])
        on_their_way = (
            Exists(below)
            | Exists(Wake.objects.waiting().filter(conversation=child))
            | Exists(BackgroundCommand.objects.running().filter(conversation=child))
        )
        return self.working().filter(Q(child=None) | rests & ~on_their_way)

    def untold(self) -> Self:
        """Whose parent has not had the answer."""
        return self.filter(told_at=None)

    def in_foreground(self) -> Self:
        return self.filter(background=False)


class Subagent(models.Model):
    class State(models.TextChoices):
        WAITING = "waiting", _("about to begin")
        RUNNING = "running", _("at work")
        COMPLETED = "completed", _("done")
        FAILED = "failed", _("failed")
        STOPPED = "stopped", _("stopped")
        REFUSED = "refused", _("refused")
        LOST = "lost", _("lost")

    class Files(models.TextChoices):
        SHARED = "shared", _("shared")
        COPY = "copy", _("a copy of its own")
        READ_ONLY = "read_only", _("read only")

    uid = models.CharField(max_length=40, unique=True, default=new_subagent_id, editable=False)
    parent = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="subagents")
    root = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    """The conversation that a person began, from which all of them descend."""
    child = models.ForeignKey(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="works_as"
    )
    """Null before it has begun, and once it is deleted."""
    call_uid = models.CharField(max_length=40, unique=True)
    """The call that asked for it: the same call never starts two."""
    given = models.JSONField(default=dict)
    """What the call said."""
    kind = models.CharField(max_length=100)
    """Its type, or the name by which the agent's roster has it."""
    description = models.CharField(max_length=200)
    background = models.BooleanField(default=False)
    files = models.CharField(max_length=20, choices=Files, default=Files.SHARED)
    base = models.CharField(max_length=64, blank=True)
    """The snapshot of its files as they were when it began; empty: they were not kept."""
    merged = models.BooleanField(null=True)
    """Whether what it changed was brought back, or refused; null: neither, or it had nothing to bring."""
    state = models.CharField(max_length=20, choices=State, default=State.WAITING)
    detail = models.CharField(max_length=500, blank=True)
    """How it ended, where the state does not say it."""
    asked_event = models.CharField(max_length=40, blank=True)
    """The message by which the child was asked: the rest behind its turn is the end."""
    ended_seq = models.PositiveBigIntegerField(default=0)
    """The last event of the child's log that counts for the answer."""
    tokens_reserved = models.PositiveBigIntegerField(default=0)
    tokens_used = models.PositiveBigIntegerField(default=0)
    seconds = models.FloatField(default=0.0)
    """How long it worked, without the wait for people."""
    stop_asked_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)
    """When the parent had the answer, which is once."""

    objects = SubagentQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("subagent")
        verbose_name_plural = _("subagents")
        constraints = [
            models.UniqueConstraint(
                fields=["child"], condition=Q(state="running"), name="subagent_one_at_a_time"
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=Q(told_at__isnull=True), name="subagent_untold"),
            models.Index(
                fields=["root"], condition=Q(state__in=["waiting", "running"]), name="subagent_live"
            ),
        ]

    def __str__(self) -> str:
        return self.uid

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    @property
    def prompt(self) -> str:
        return str(self.given.get("prompt", ""))

    @property
    def inline(self) -> dict[str, Any]:
        """The agent that the call itself defines; empty: it names one."""
        found = self.given.get("inline")
        return found if isinstance(found, dict) else {}


LIVE = (Subagent.State.WAITING, Subagent.State.RUNNING)
