"""That a model was asked what to call a conversation: one row each, which is the claim to ask at most once.

It holds no word of the conversation. What the call used is a `spending.models.Usage` as any other's.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from conversations.models import Conversation
from spending.beside import CallBeside

PURPOSE = "title"
"""Of the model call, in usage."""


class TitleRequest(CallBeside):
    PURPOSE = PURPOSE

    class Outcome(models.TextChoices):
        ASKED = "asked", _("asked")
        TITLED = "titled", _("titled")
        KEPT = "kept", _("kept as it was called")
        FAILED = "failed", _("failed")
        NO_ROOM = "no_room", _("no budget left")
        LOST = "lost", _("lost with its process")

    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, related_name="title_request"
    )
    message_uid = models.CharField(max_length=40, blank=True)
    """What it is named after."""
    replaces = models.CharField(max_length=40, blank=True)
    """The event that gave the title of first words; any later one is somebody's."""
    outcome = models.CharField(max_length=20, choices=Outcome, default=Outcome.ASKED)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("request for a title")
        verbose_name_plural = _("requests for titles")
        indexes = [
            models.Index(
                fields=["at"], condition=models.Q(outcome="asked"), name="title_request_asked"
            ),
            models.Index(
                fields=["provider", "model", "at"],
                condition=models.Q(outcome="failed"),
                name="title_request_failed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}: {self.outcome}"
