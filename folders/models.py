"""Folders: a subject that several conversations belong to, with what each is told and given when it begins.

A folder and its members are shared; which conversations lie in it is each person's own (`FolderPlace`), so
that nobody sees another's work by way of a folder. What a conversation was told stands in its log
(`events.FolderEntered`), not here.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, F, OuterRef, Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from agents.models import Agent
from conversations.models import Conversation, StoredFile
from harness.ids import new_id

INSTRUCTIONS_LIMIT = 8_000
"""Characters; they stand in every prompt of the conversations that begin there."""


def new_folder_id() -> str:
    return new_id("fold")


class FolderQuerySet(models.QuerySet["Folder"]):
    def visible_to(self, user: User) -> Self:
        """Her own and those she is a member of, in organisations she still belongs to."""
        member = FolderMember.objects.filter(folder=OuterRef("pk"), user=user)
        return self._there(user).filter(Q(owner=user) | Q(Exists(member)))

    def editable_by(self, user: User) -> Self:
        """Those whose instructions and files she may change."""
        editor = FolderMember.objects.filter(
            folder=OuterRef("pk"), user=user, role=FolderMember.Role.EDITOR
        )
        return self._there(user).filter(Q(owner=user) | Q(Exists(editor)))

    def owned_by(self, user: User) -> Self:
        return self._there(user).filter(owner=user)

    def _there(self, user: User) -> Self:
        return self.filter(organisation__memberships__user=user)


class Folder(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_folder_id, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="folders")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="folders"
    )
    name = models.CharField(_("name"), max_length=100)
    instructions = models.TextField(_("instructions"), blank=True)
    default_agent = models.ForeignKey(
        Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = FolderQuerySet.as_manager()

    class Meta:
        ordering = ["name", "id"]
        verbose_name = _("folder")
        verbose_name_plural = _("folders")

    def __str__(self) -> str:
        return self.uid


class FolderMember(models.Model):
    class Role(models.TextChoices):
        VIEWER = "viewer", _("begin conversations in it")
        EDITOR = "editor", _("also change instructions and files")

    folder = models.ForeignKey(
        Folder, on_delete=models.CASCADE, related_name="members", db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="folder_memberships"
    )
    role = models.CharField(max_length=10, choices=Role)

    class Meta:
        ordering = ["id"]
        verbose_name = _("member of a folder")
        verbose_name_plural = _("members of folders")
        constraints = [
            models.UniqueConstraint(fields=["folder", "user"], name="folder_member_once")
        ]

    def __str__(self) -> str:
        return f"{self.folder_id}:{self.user_id}"


class FolderFileQuerySet(models.QuerySet["FolderFile"]):
    def there(self) -> Self:
        """Those whose giver still belongs to the organisation."""
        return self.filter(
            file__owner__memberships__organisation=F("folder__organisation")
        ).select_related("file__owner", "file__organisation")


class FolderFile(models.Model):
    """An upload that everybody in the folder gets a copy of."""

    folder = models.ForeignKey(Folder, on_delete=models.CASCADE, related_name="files")
    file = models.OneToOneField(StoredFile, on_delete=models.CASCADE, related_name="+")
    """Its giver's, and counted among hers; whoever deletes it there takes it out of the folder."""

    objects = FolderFileQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("file of a folder")
        verbose_name_plural = _("files of folders")

    def __str__(self) -> str:
        return str(self.file_id)


class FolderPlace(models.Model):
    """That a person has a conversation in a folder."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="folder_places",
        db_index=False,
    )
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="folder_places"
    )
    folder = models.ForeignKey(Folder, on_delete=models.CASCADE, related_name="places")

    class Meta:
        verbose_name = _("place in a folder")
        verbose_name_plural = _("places in folders")
        constraints = [
            models.UniqueConstraint(fields=["user", "conversation"], name="folder_place_once")
        ]

    def __str__(self) -> str:
        return f"{self.folder_id}:{self.conversation_id}"
