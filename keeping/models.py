"""What a person makes of conversations for herself: pins, tags in her own words, what she has seen.

Rows of a person and not columns of the conversation: whoever may see it too keeps it in an order of her
own. Of a conversation that she may not see any more nothing is shown; the rows go with it, or with her.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from conversations.models import Conversation

TAG_LENGTH = 50


class Pin(models.Model):
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="pins", db_index=False
    )
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="pins")
    pinned_at = models.DateTimeField()

    class Meta:
        verbose_name = _("pin")
        verbose_name_plural = _("pins")
        constraints = [models.UniqueConstraint(fields=["user", "conversation"], name="pin_once")]

    def __str__(self) -> str:
        return str(self.conversation_id)


class Tag(models.Model):
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tags", db_index=False
    )
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="tags")
    word = models.CharField(_("tag"), max_length=TAG_LENGTH)
    """As she wrote it."""
    folded = models.CharField(max_length=3 * TAG_LENGTH)
    """By which it is found: large and small letters are one. One letter may become three."""

    class Meta:
        ordering = ["folded"]
        verbose_name = _("tag")
        verbose_name_plural = _("tags")
        constraints = [
            models.UniqueConstraint(
                fields=["user", "folded", "conversation"], name="tag_of_conversation_once"
            )
        ]

    def __str__(self) -> str:
        return str(self.conversation_id)


class SeenMark(models.Model):
    """Up to where a person has seen a conversation: what came behind it is unread (`keeping.unread`).

    That she opened one which waits, so that no mail need tell her, is another matter (`Seen` of the mails).
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+")
    seq = models.PositiveBigIntegerField()
    """Number of the last event that she has seen. It only grows."""

    class Meta:
        verbose_name = _("seen mark")
        verbose_name_plural = _("seen marks")
        constraints = [
            models.UniqueConstraint(fields=["user", "conversation"], name="seen_mark_once")
        ]

    def __str__(self) -> str:
        return str(self.conversation_id)
