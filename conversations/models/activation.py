"""The journal of claims: who took a conversation and why, and how that ended. Rows are only added.

For operators and for finding out afterwards; no decision rests on it. `activations` writes and prunes.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .conversation import Conversation
from .run import Run


class Activation(models.Model):
    """One step of a claim's life: `leased`, and later exactly one of the others."""

    class Step(models.TextChoices):
        LEASED = "leased", _("leased")
        ACKED = "acked", _("acked")
        REQUEUED = "requeued", _("requeued")
        BLOCKED = "blocked", _("blocked")
        ABANDONED = "abandoned", _("abandoned")
        SKIPPED = "skipped", _("skipped")

    class Cause(models.TextChoices):
        HINT = "hint", _("told")
        SWEEP = "sweep", _("found by the sweep")
        DUE_WAKE = "due_wake", _("a wake came due")
        RETRY = "retry", _("a failed request is tried again")

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="activations"
    )
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="activations")
    step = models.CharField(_("step"), max_length=10, choices=Step)
    cause = models.CharField(_("woken by"), max_length=10, choices=Cause, blank=True)
    """What woke the run; only where it is leased."""
    worker = models.CharField(_("worker"), max_length=100)
    detail = models.CharField(_("detail"), max_length=200, blank=True)
    """Why it rests, or what broke."""
    created_at = models.DateTimeField(_("at"), auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = _("activation")
        verbose_name_plural = _("activations")
        indexes = [models.Index(fields=["created_at"], name="activation_age")]

    def __str__(self) -> str:
        return f"run {self.run_id} {self.step}"
