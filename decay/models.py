"""How memories of a store fade: one rule, first a dry run; how far each has faded, and what a pass did.

Which memories a rule means is `fading`'s part, what is left of a text `wording`'s. No row here holds a word
of a memory.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memory.access import Author
from memory.models import AuthorKind, Memory, MemoryStore

GRACE = timedelta(days=1)
"""From when a rule is put in force until anything fades."""


class Step(models.IntegerChoices):
    """How far a memory has faded; each holds less than the one before."""

    FULL = 0, _("whole")
    SUMMARY = 1, _("its beginning")
    MARKER = 2, _("a few words")
    GONE = 3, _("gone")


class DecayRuleQuerySet(models.QuerySet["DecayRule"]):
    def effective(self) -> Self:
        """By which memories fade by now. Nothing is written to an archived store."""
        begun = timezone.now() - GRACE
        return self.filter(in_force_at__lte=begun, store__archived_at=None)


class DecayRule(models.Model):
    store = models.OneToOneField(MemoryStore, on_delete=models.CASCADE, related_name="decay_rule")
    summary_days = models.PositiveIntegerField(null=True)
    marker_days = models.PositiveIntegerField(null=True)
    gone_days = models.PositiveIntegerField(null=True)
    """Days without use after which a memory takes that step, each later than the one before. Null: there is
    no such step."""
    also_unconfirmed = models.BooleanField(_("also what waits for a yes"), default=False)
    """What strangers wrote and nobody confirmed fades as everything else; else it stays as it is."""
    version = models.PositiveIntegerField(default=1)
    """Counts what was saved: whoever puts it in force says which one she looked at."""
    in_force_at = models.DateTimeField(null=True)
    """Null: a dry run."""
    begun_kind = models.CharField(max_length=25, choices=AuthorKind, blank=True)
    begun_uid = models.CharField(max_length=40, blank=True)
    """Who put it in force, whom the versions of what fades name."""
    saved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    saved_at = models.DateTimeField(auto_now=True)

    objects = DecayRuleQuerySet.as_manager()

    class Meta:
        verbose_name = _("rule of decay")
        verbose_name_plural = _("rules of decay")

    def __str__(self) -> str:
        return f"{self.store_id}: {self.days}"

    @property
    def days(self) -> dict[Step, int]:
        """By step, in order; without those that there are not."""
        every = {
            Step.SUMMARY: self.summary_days,
            Step.MARKER: self.marker_days,
            Step.GONE: self.gone_days,
        }
        return {step: days for step, days in every.items() if days is not None}

    @property
    def begins_at(self) -> datetime | None:
        """When anything fades for the first time; None: never, as it is a dry run."""
        return self.in_force_at + GRACE if self.in_force_at else None

    @property
    def author(self) -> Author:
        return Author(AuthorKind(self.begun_kind), self.begun_uid)


class Faded(models.Model):
    """How far a memory has faded. One that was changed since is whole again."""

    memory = models.OneToOneField(Memory, on_delete=models.CASCADE, related_name="faded")
    step = models.PositiveSmallIntegerField(choices=Step)
    version_uid = models.CharField(max_length=40)
    """Of the version that is left of it: once the memory has another, somebody wrote it anew."""
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("faded memory")
        verbose_name_plural = _("faded memories")

    def __str__(self) -> str:
        return f"{self.memory_id}: {self.step}"

    @property
    def holds(self) -> bool:
        """Nobody wrote the memory anew since."""
        return self.version_uid == self.memory.version_uid


class DecayRun(models.Model):
    """What one transaction did in one store."""

    store = models.ForeignKey(MemoryStore, on_delete=models.CASCADE, related_name="decay_runs")
    rule_version = models.PositiveIntegerField()
    at = models.DateTimeField(_("at"), default=timezone.now)
    summaries = models.PositiveIntegerField(_("to their beginning"))
    markers = models.PositiveIntegerField(_("to a few words"))
    gone = models.PositiveIntegerField(_("gone"))
    tokens_saved = models.IntegerField(_("tokens saved"))
    """About; a marker of a very short text is longer than it."""

    class Meta:
        ordering = ["id"]
        verbose_name = _("pass of decay")
        verbose_name_plural = _("passes of decay")
        constraints = [
            models.CheckConstraint(
                condition=Q(summaries__gt=0) | Q(markers__gt=0) | Q(gone__gt=0),
                name="decay_run_did_something",
            )
        ]

    def __str__(self) -> str:
        return f"{self.store_id}: {self.at}"
