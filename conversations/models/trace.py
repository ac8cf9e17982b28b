"""Traces: what exactly was sent to a model and came back, kept only where tracing is on."""

from __future__ import annotations

from django.db import models

from .conversation import Conversation


class ModelTrace(models.Model):
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="traces")
    model_request_id = models.CharField(max_length=40, unique=True)
    request = models.JSONField()
    response = models.JSONField(null=True)
    """Null while the request is under way or when it failed before the first piece."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return self.model_request_id
