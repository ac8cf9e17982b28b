"""Checkpoints: that a conversation's files were kept, and at which place of its log.

What they held is in a store of files (`tools_app.snapshots`); when one is made, and which holds for a
place, is `conversations.checkpoints`' part.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from harness.ids import new_id

from .conversation import Conversation


def new_checkpoint_id() -> str:
    return new_id("ckpt")


class Checkpoint(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_checkpoint_id, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="checkpoints", db_index=False
    )
    seq = models.PositiveBigIntegerField()
    """The log's last event by then: it tells how the files were at that place, and at those before it up
    to the checkpoint before."""
    turn = models.CharField(max_length=40, blank=True)
    """The turn that was about to change files; empty: they were about to be brought back."""
    snapshot = models.CharField(max_length=64, blank=True)
    """Empty: they were not kept, or are no longer; see `problem`."""
    problem = models.CharField(max_length=20, blank=True)
    files = models.PositiveIntegerField(default=0)
    size = models.PositiveBigIntegerField(default=0)
    """Bytes."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["conversation", "seq"]
        verbose_name = _("checkpoint of files")
        verbose_name_plural = _("checkpoints of files")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="checkpoint_seq_unique"),
        ]

    def __str__(self) -> str:
        return self.uid
