"""Vectors of texts beside the rows whose texts they are of, as float32, and who is making them.

One is of a model and of a text, by its hash: of another it counts for nothing and is made anew. It goes with
its row. What makes them is `memory.embedding`'s part.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .memory import Memory


class Vector(models.Model):
    model = models.CharField(max_length=80)
    sha256 = models.CharField(max_length=64)
    data = models.BinaryField()

    class Meta:
        abstract = True


class MemoryVector(Vector):
    memory = models.OneToOneField(
        Memory, on_delete=models.CASCADE, primary_key=True, related_name="vector"
    )

    class Meta:
        verbose_name = _("vector of a memory")
        verbose_name_plural = _("vectors of memories")

    def __str__(self) -> str:
        return f"{self.memory_id}: {self.model}"


class EmbeddingClaim(models.Model):
    """That somebody is making the vectors of a table."""

    name = models.CharField(max_length=40, primary_key=True)
    holder = models.CharField(max_length=40, blank=True)
    """Empty: nobody is."""
    lease_until = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("claim to make vectors")
        verbose_name_plural = _("claims to make vectors")

    def __str__(self) -> str:
        return self.name
