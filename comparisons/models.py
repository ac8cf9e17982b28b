"""Comparisons: one question put to several pipelines and agents, each of which answers in the ordinary way.

What each of them said, and what judges said of it, stands in their conversations; rows hold which those are,
and the points that were read.
"""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Left
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from conversations.models import Conversation
from harness.ids import new_id
from pipelines.models import BEGINNING, WAITING, PipelineRun

SCALE = 5
"""The most points of a judge; the fewest are 1."""


def new_comparison_id() -> str:
    return new_id("compare")


class ComparisonQuerySet(models.QuerySet["Comparison"]):
    def visible_to(self, user: User) -> Self:
        """Whoever sees the conversation that it is."""
        return self.filter(root__in=Conversation.objects.visible_to(user).values("pk"))

    def owned_by(self, user: User) -> Self:
        return self.filter(root__in=Conversation.objects.owned_by(user).values("pk"))

    def going_on(self) -> Self:
        return self.filter(state=Comparison.State.RUNNING)

    def due(self) -> Self:
        """Those of which something may be done now: all that go on, but for those of which everything that is
        open works or waits."""
        holds = Entry.objects.holding().filter(pk=OuterRef("pk"))
        entries = Entry.objects.filter(comparison=OuterRef("pk"), state__in=Entry.OPEN)
        return self.going_on().filter(Exists(entries.exclude(Exists(holds))) | ~Exists(entries))

    def in_lists(self) -> Self:
        """With the beginning of what was asked, not all of it."""
        named = self.select_related("root__owner").prefetch_related("entries")
        return named.defer("question").annotate(beginning=Left("question", BEGINNING))


class Comparison(models.Model):
    class State(models.TextChoices):
        RUNNING = "running", _("under way")
        DONE = "done", _("done")
        STOPPED = "stopped", _("stopped")

    uid = models.CharField(max_length=40, unique=True, default=new_comparison_id, editable=False)
    root = models.OneToOneField(Conversation, on_delete=models.CASCADE, related_name="comparison")
    """What all of it stands below: who sees it sees the comparison, and its budget caps all."""
    question = models.TextField()
    judged = models.BooleanField()
    """A model is asked how good each answer is."""
    judge_provider = models.CharField(max_length=50, blank=True)
    judge_model = models.CharField(max_length=100, blank=True)
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    objects = ComparisonQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("comparison")
        verbose_name_plural = _("comparisons")
        indexes = [
            models.Index(fields=["id"], condition=Q(state="running"), name="comparison_running")
        ]

    def __str__(self) -> str:
        return self.uid


class EntryQuerySet(models.QuerySet["Entry"]):
    def holding(self) -> Self:
        """Those that are at work, or wait in a way that only others end. A judge that refuses is none of
        them."""
        answers = Q(run__state=PipelineRun.State.RUNNING) | Q(run=None) & _holds("conversation")
        judged = _holds("judge") & ~Q(judge__stop_reason="refusal")
        return self.filter(
            Q(state=Entry.State.RUNNING) & answers | Q(state=Entry.State.JUDGING) & judged
        )


def _holds(name: str) -> Q:
    status = Conversation.Status
    works = Q((f"{name}__status__in", [status.RUNNING, status.RESCHEDULING]))
    rests = Q((f"{name}__status", status.IDLE))
    waits = Q((f"{name}__stop_reason__in", WAITING)) | Q((f"{name}__owes_run", True))
    return works | rests & waits


class Entry(models.Model):
    """One that answers: a run of a pipeline, or a conversation with an agent."""

    class State(models.TextChoices):
        RUNNING = "running", _("at work")
        JUDGING = "judging", _("is judged")
        DONE = "done", _("done")
        FAILED = "failed", _("did not pass")
        STOPPED = "stopped", _("stopped")

    OPEN = (State.RUNNING, State.JUDGING)

    comparison = models.ForeignKey(
        Comparison, on_delete=models.CASCADE, related_name="entries", db_index=False
    )
    place = models.PositiveSmallIntegerField()
    """Counts up from 1, in the order in which they were named."""
    name = models.CharField(max_length=120)
    run = models.OneToOneField(
        PipelineRun, on_delete=models.SET_NULL, null=True, related_name="compared"
    )
    conversation = models.OneToOneField(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="compared"
    )
    """With the agent. Null for a pipeline, and once it is deleted."""
    asked_event = models.CharField(max_length=40, blank=True)
    """The message by which the agent was asked."""
    ended_seq = models.PositiveBigIntegerField(default=0)
    """The last event that counts for the agent's answer."""
    judge = models.OneToOneField(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="judges_in_comparison"
    )
    points = models.FloatField(null=True)
    """Of the judge; null: it was not asked, or said nothing that can be read."""
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    problem = models.CharField(max_length=500, blank=True)
    ended_at = models.DateTimeField(null=True)
    """When it had answered; its judge takes time of its own."""

    objects = EntryQuerySet.as_manager()

    class Meta:
        ordering = ["comparison", "place"]
        verbose_name = _("entry of a comparison")
        verbose_name_plural = _("entries of comparisons")
        constraints = [
            models.UniqueConstraint(fields=["comparison", "place"], name="comparison_entry_unique")
        ]

    def __str__(self) -> str:
        return f"{self.comparison_id}:{self.place} {self.name}"

    @property
    def is_open(self) -> bool:
        return self.state in self.OPEN

    @property
    def top(self) -> Conversation | None:
        """What all of it stands in and below, but for its judge."""
        return self.run.root if self.run is not None else self.conversation
