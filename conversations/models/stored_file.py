"""Files that programs upload, and their copies in the workspaces of conversations.

The bytes lie where `storedbytes` says, and go whichever way a row goes (`removals`).
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from harness.ids import new_id

from .conversation import Conversation

PREFIX = "file"
"""Of the ids of uploads."""


def new_file_id() -> str:
    return new_id(PREFIX)


def new_resource_id() -> str:
    return new_id("sesrsc")


class StoredFileQuerySet(models.QuerySet["StoredFile"]):
    def visible_to(self, user: User) -> Self:
        """The person's own, in organisations she still belongs to, until they expire."""
        return self.kept().filter(owner=user, organisation__memberships__user=user)

    def kept(self) -> Self:
        """Those that have not expired."""
        return self.filter(models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now()))


class StoredFile(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_file_id, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="stored_files"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="stored_files"
    )
    filename = models.CharField(_("name"), max_length=255)
    mime_type = models.CharField(_("type"), max_length=127)
    size = models.PositiveBigIntegerField(_("bytes"))
    sha256 = models.CharField(max_length=64)
    source = models.CharField(max_length=300, blank=True)
    """Whose words these are, where they are to stand in a message as strangers' and no file of it. Empty: it
    is a file that somebody uploaded."""
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    """From then on it is not found, and its bytes are removed. Null: it stays until it is deleted."""

    objects = StoredFileQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("uploaded file")
        verbose_name_plural = _("uploaded files")

    def __str__(self) -> str:
        return self.uid


class FileResource(models.Model):
    """A copy of a file in a conversation's workspace."""

    uid = models.CharField(max_length=40, unique=True, default=new_resource_id, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="file_resources"
    )
    file = models.ForeignKey(StoredFile, on_delete=models.SET_NULL, null=True, related_name="+")
    """Null once the upload was deleted; the copy stays."""
    file_uid = models.CharField(max_length=40)
    path = models.CharField(max_length=400)
    """Relative to the workspace."""
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["id"]
        verbose_name = _("file of a conversation")
        verbose_name_plural = _("files of conversations")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "path"], name="file_resource_path")
        ]

    def __str__(self) -> str:
        return self.uid


class OutputFileQuerySet(models.QuerySet["OutputFile"]):
    def visible_to(self, user: User) -> Self:
        """Those of conversations that the person may see."""
        return self.filter(conversation__in=Conversation.objects.visible_to(user))


class OutputFile(models.Model):
    """The name under which programs fetch a file that an agent put into its workspace's outputs.

    The bytes are the workspace's own; a row whose file is gone stands for nothing.
    """

    uid = models.CharField(max_length=40, unique=True, editable=False)
    """Made of the conversation and the path, so that a file keeps its id."""
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="output_files"
    )
    path = models.TextField()
    """Relative to the workspace."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = OutputFileQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("output of a conversation")
        verbose_name_plural = _("outputs of conversations")

    def __str__(self) -> str:
        return self.uid
