"""Runs: one from each claim of a conversation to its next rest.

The constraint is the claim: at most one running run a conversation. `claims.py` takes, beats,
releases and sweeps.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from .conversation import Conversation


class Run(models.Model):
    class State(models.TextChoices):
        RUNNING = "running", _("running")
        RESTED = "rested", _("rested")
        FAILED = "failed", _("failed")
        LOST = "lost", _("lost")

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="runs")
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    worker = models.CharField(max_length=100)
    """Host, process and a random part: who holds the lease."""
    lease_until = models.DateTimeField()
    """By the database's clock. Past it the run counts as lost and another may take over; every
    append of a run checks that it still holds the claim, so a late one can write nothing."""
    stop_reason = models.CharField(max_length=30, blank=True)
    error = models.TextField(blank=True)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("run")
        verbose_name_plural = _("runs")
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(state="running"),
                name="one_running_run_per_conversation",
            )
        ]
        indexes = [
            models.Index(fields=["lease_until"], condition=Q(state="running"), name="run_leases")
        ]

    def __str__(self) -> str:
        return f"run {self.pk} ({self.state})"
