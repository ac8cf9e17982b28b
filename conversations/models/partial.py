"""Text that is still arriving, checkpointed about once a second.

It becomes an event when its block ends. What is left here by a worker that died is turned into an
interrupted message by the next run, so nothing that was said is lost.
"""

from __future__ import annotations

from django.db import models

from .conversation import Conversation


class PartialBlock(models.Model):
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="partial_blocks"
    )
    uid = models.CharField(max_length=40, unique=True)
    """The id its event will have."""
    kind = models.CharField(max_length=10)
    """`text` or `thinking`."""
    model_request_id = models.CharField(max_length=40)
    continues = models.CharField(max_length=40, null=True)
    text = models.TextField()
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.uid}"
