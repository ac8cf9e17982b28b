"""How a memory came to be what it is: one row for each change, which outlives the memory.

Rows are added by `memory.writing` and never changed, except that content may be taken out for good
(`redact_version`), which leaves who and when.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from harness.ids import new_id

from .store import MemoryStore


def new_version_id() -> str:
    return new_id("memver")


class AuthorKind(models.TextChoices):
    """Who acted, in the words of the public API."""

    SESSION = "session_actor", _("an agent")
    API = "api_actor", _("a program")
    USER = "user_actor", _("a person")
    SERVICE = "service_account_actor", _("a service account")


class MemoryVersionQuerySet(models.QuerySet["MemoryVersion"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(store__in=MemoryStore.objects.visible_to(user))


class MemoryVersion(models.Model):
    class Operation(models.TextChoices):
        CREATED = "created", _("made")
        MODIFIED = "modified", _("changed")
        DELETED = "deleted", _("deleted")

    uid = models.CharField(max_length=40, unique=True, default=new_version_id, editable=False)
    store = models.ForeignKey(
        MemoryStore, on_delete=models.CASCADE, related_name="versions", db_index=False
    )
    memory_uid = models.CharField(max_length=40)
    operation = models.CharField(max_length=10, choices=Operation)
    path = models.CharField(max_length=1_024, null=True)
    content = models.TextField(null=True)
    sha256 = models.CharField(max_length=64, null=True)
    size = models.PositiveIntegerField(null=True)
    author_kind = models.CharField(max_length=25, choices=AuthorKind)
    author_uid = models.CharField(max_length=40)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """The account for which it was done."""
    redacted_at = models.DateTimeField(null=True)
    redacted_kind = models.CharField(max_length=25, choices=AuthorKind, blank=True)
    redacted_uid = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = MemoryVersionQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("version of a memory")
        verbose_name_plural = _("versions of memories")
        indexes = [
            models.Index(fields=["store", "memory_uid"], name="memory_versions_of_memory"),
        ]

    def __str__(self) -> str:
        return self.uid
