"""One memory: a text at a path of its store, with where it came from and when it is true.

What it said before is its versions' (`MemoryVersion`). A row is written by `memory.writing` alone, which
also adds the version.
"""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThanOrEqual, LessThan
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from harness.ids import new_id

from .store import MemoryStore

PATH_LIMIT = 1_024


def new_memory_id() -> str:
    return new_id("mem")


class Kind(models.TextChoices):
    NOTE = "note", _("note")
    """A file among files: nothing is claimed of it."""
    FACT = "fact", _("fact")
    PREFERENCE = "preference", _("preference")
    LESSON = "lesson", _("lesson")
    CORRECTION = "correction", _("correction")


class MemoryQuerySet(models.QuerySet["Memory"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(store__in=MemoryStore.objects.visible_to(user))

    def true_at(self, moment: datetime) -> Self:
        """What held then, as far as anybody said until when."""
        begun = Q(valid_from=None) | Q(valid_from__lte=moment)
        return self.filter(begun, Q(valid_until=None) | Q(valid_until__gt=moment))

    def known_between(self, since: datetime | None, until: datetime | None) -> Self:
        """What came to be known from `since` on and before `until`."""
        known_from, rows = Coalesce("valid_from", "created_at"), self.all()
        if since is not None:
            rows = rows.filter(GreaterThanOrEqual(known_from, since))
        return rows if until is None else rows.filter(LessThan(known_from, until))

    def trusted(self) -> Self:
        """What agents may be reminded of: all but what strangers wrote and no person has confirmed."""
        return self.filter(Q(untrusted=False) | Q(confirmed_at__isnull=False))

    def count_use(self) -> None:
        """An agent is told of them now."""
        self.update(uses=F("uses") + 1, used_at=timezone.now())


class Memory(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_memory_id, editable=False)
    store = models.ForeignKey(
        MemoryStore, on_delete=models.CASCADE, related_name="memories", db_index=False
    )
    path = models.CharField(max_length=PATH_LIMIT)
    content = models.TextField(blank=True)
    sha256 = models.CharField(max_length=64)
    """Of the content's UTF-8 bytes, in lower case."""
    size = models.PositiveIntegerField()
    """Bytes of the content."""
    terms = models.TextField(editable=False)
    """What of path and content is searched for: `memory.retrieval.words`, between spaces."""
    audience = models.CharField(max_length=60, editable=False)
    """Its store's: what stands in the index before each term."""
    version_uid = models.CharField(max_length=40, editable=False)
    """Of the version that says the same as this row."""
    kind = models.CharField(_("kind"), max_length=12, choices=Kind, default=Kind.NOTE)
    key = models.CharField(max_length=120, blank=True)
    """What it is about, where somebody named it: of one store and kind, one is true at a time."""
    valid_from = models.DateTimeField(_("true from"), null=True, blank=True)
    valid_until = models.DateTimeField(_("true until"), null=True, blank=True)
    supersedes = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, related_name="superseded_by", editable=False
    )
    pinned = models.BooleanField(_("pinned"), default=False)
    """It is told in every conversation it may be told in, and never fades."""
    untrusted = models.BooleanField(default=False)
    """It came from what strangers wrote."""
    confirmed_at = models.DateTimeField(null=True, blank=True)
    """When a person said yes to it."""
    source_conversation = models.CharField(max_length=40, blank=True)
    source_event = models.CharField(max_length=40, blank=True)
    source_agent = models.CharField(max_length=40, blank=True)
    """Public ids: what it came from may be gone."""
    uses = models.PositiveIntegerField(default=0)
    """How often an agent was told of it: reminded, or shown it where it searched or read."""
    used_at = models.DateTimeField(null=True)
    marked_at = models.DateTimeField(null=True, editable=False)
    """When somebody last pinned it or let go of it."""
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    updated_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = MemoryQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("memory")
        verbose_name_plural = _("memories")
        constraints = [
            models.UniqueConstraint(fields=["store", "path"], name="memory_path_once"),
            models.CheckConstraint(
                condition=Q(valid_from=None)
                | Q(valid_until=None)
                | Q(valid_until__gte=F("valid_from")),
                name="memory_true_forwards",
            ),
            models.UniqueConstraint(
                fields=["store", "kind", "key"],
                condition=Q(valid_until=None) & ~Q(key=""),
                name="memory_key_true_once",
            ),
        ]

    def __str__(self) -> str:
        return self.uid

    @property
    def waits(self) -> bool:
        """No agent is told of it before a person says yes."""
        return self.untrusted and self.confirmed_at is None

    @property
    def is_suggestion(self) -> bool:
        """Another text for `supersedes`, in whose place it is put with a person's yes."""
        return self.waits and self.kind == Kind.NOTE and self.supersedes_id is not None
