"""Who else may see a conversation, and what she may do in it. Its owner says so (`actions.sharing`).

What a row allows is asked of `Conversation.objects` (`visible_to`, `writable_by`, `decidable_by`), which also
look whether both still belong to the conversation's organisation.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from harness.ids import new_id


class ShareRole(models.TextChoices):
    """Each may what those before it may."""

    VIEWER = "viewer", _("may read")
    WRITER = "writer", _("may write")
    DECIDER = "decider", _("may write and decide")


WRITING = (ShareRole.WRITER, ShareRole.DECIDER)
DECIDING = (ShareRole.DECIDER,)


def new_share_uid() -> str:
    return new_id("shr")


class Share(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_share_uid, editable=False)
    conversation = models.ForeignKey(
        "conversations.Conversation", on_delete=models.CASCADE, related_name="shares"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="shares",
        verbose_name=_("person"),
    )
    """Empty: everybody in the conversation's organisation."""
    role = models.CharField(_("role"), max_length=10, choices=ShareRole)
    created_at = models.DateTimeField(_("shared at"), default=timezone.now, editable=False)

    class Meta:
        ordering = ["id"]
        verbose_name = _("share")
        verbose_name_plural = _("shares")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "user"], name="share_of_person"),
            models.UniqueConstraint(
                fields=["conversation"], condition=Q(user=None), name="share_of_organisation"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} · {self.uid}"
