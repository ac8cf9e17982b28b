"""Vectors of texts beside the rows whose texts they are of, as float16, who is making them and how far that
is, and what a model's cosines mean.

One is of a model and of a text, by its hash: of another it counts for nothing and is made anew, as another
row, so that what has a higher key is newer. It goes with its row. What makes them is `memory.embedding`'s
part.
"""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from .memory import Memory

PROBLEM_LIMIT = 200


class Vector(models.Model):
    model = models.CharField(max_length=80)
    sha256 = models.CharField(max_length=64)
    audience = models.CharField(max_length=60)
    """Its row's: those of the same people are held together (`memory.embedding.held`)."""
    code = models.BinaryField()
    """The same in few bits, which all are compared by (`memory.embedding.codes`)."""
    data = models.BinaryField()

    class Meta:
        abstract = True


class MemoryVector(Vector):
    memory = models.OneToOneField(Memory, on_delete=models.CASCADE, related_name="vector")

    class Meta:
        verbose_name = _("vector of a memory")
        verbose_name_plural = _("vectors of memories")
        # With all that is read of one, so that no row is met when codes are read.
        indexes = [
            models.Index(
                fields=["audience", "model", "id", "memory", "code"], name="memory_vector_codes"
            )
        ]

    def __str__(self) -> str:
        return f"{self.memory_id}: {self.model}"


class EmbeddingClaim(models.Model):
    """That somebody is making the vectors of a table."""

    name = models.CharField(max_length=40, primary_key=True)
    holder = models.CharField(max_length=40, blank=True)
    """Empty: nobody is."""
    lease_until = models.DateTimeField(null=True)
    model = models.CharField(max_length=80, blank=True)
    """Whose vectors the pass makes that is under way."""
    top = models.BigIntegerField(null=True)
    """The highest key when that pass began: what has a higher one is newer, and made before it goes on."""
    below = models.BigIntegerField(null=True)
    """What has a higher key, up to `top`, was looked through. None: no pass is under way."""
    fruitful = models.BooleanField(default=False)
    """That pass made some, so that another one looks for what came behind it."""
    failures = models.PositiveSmallIntegerField(default=0)
    """How often in a row the service did not answer."""
    problem = models.CharField(max_length=PROBLEM_LIMIT, blank=True)
    """Why it gave none when it was last asked. Empty: it did."""
    rests_until = models.DateTimeField(null=True)
    """Before that it is not asked again."""

    class Meta:
        verbose_name = _("claim to make vectors")
        verbose_name_plural = _("claims to make vectors")

    def __str__(self) -> str:
        return self.name


class EmbeddingScale(models.Model):
    """What the cosines of a model service's vectors mean, measured once for each model: there are some whose
    texts about nothing in common have 0.1, and some whose have 0.8."""

    model = models.CharField(max_length=80, primary_key=True)
    floor = models.FloatField()
    alike = models.FloatField()

    class Meta:
        verbose_name = _("scale of a model's vectors")
        verbose_name_plural = _("scales of models' vectors")

    def __str__(self) -> str:
        return self.model
