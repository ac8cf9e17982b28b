"""Background commands: what runs, or ran, beside the turns of a conversation.

The row outlives every process, socket and restart. Who moves it from state to state is
`conversations.background`; its output is a file in the conversation's workspace.
"""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from harness.ids import new_id

from .conversation import Conversation


def new_background_id() -> str:
    return new_id("bg")


class BackgroundCommandQuerySet(models.QuerySet["BackgroundCommand"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(conversation__in=Conversation.objects.visible_to(user))

    def running(self) -> Self:
        return self.filter(state=BackgroundCommand.State.RUNNING)


class BackgroundCommand(models.Model):
    class State(models.TextChoices):
        RUNNING = "running", _("running")
        COMPLETED = "completed", _("completed")
        FAILED = "failed", _("failed")
        TIMED_OUT = "timed_out", _("took too long")
        CANCELLED = "cancelled", _("cancelled")
        LOST = "lost", _("lost with its process")

    uid = models.CharField(max_length=40, unique=True, default=new_background_id, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="background_commands"
    )
    call_uid = models.CharField(max_length=40, unique=True)
    """The call that started it: the same call never starts two."""
    command = models.TextField()
    state = models.CharField(max_length=20, choices=State, default=State.RUNNING)
    exit_code = models.IntegerField(null=True)
    detail = models.CharField(max_length=500, blank=True)
    """How it ended, where the state and the code do not say it."""
    output_path = models.CharField(max_length=200)
    """Relative to the workspace."""
    network = models.JSONField(null=True)
    """What it asked its way out for (`NetworkRecord`); null: not known, or it had none."""
    untrusted_by = models.CharField(max_length=300, blank=True)
    """What may have brought into its output what others wrote; while it runs, as far as can be ruled
    out by then."""
    timeout_seconds = models.PositiveIntegerField()
    host = models.CharField(max_length=255)
    boot = models.CharField(max_length=64)
    """Of the machine, so that a process id of before a restart is not taken for one of after."""
    pid = models.PositiveIntegerField()
    """The server's process that carries it."""
    process_started = models.CharField(max_length=40, blank=True)
    """Tells that process from a later one with the same id."""
    seen_at = models.DateTimeField()
    """The process's last sign of life."""
    cancel_asked_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    objects = BackgroundCommandQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("background command")
        verbose_name_plural = _("background commands")
        indexes = [
            models.Index(
                fields=["seen_at"], condition=Q(state="running"), name="background_running"
            ),
        ]

    def __str__(self) -> str:
        return self.uid
