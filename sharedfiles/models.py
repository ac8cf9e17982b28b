"""Files that all conversations of an agent share within one organisation: versions, and drafts of them.

A version is written once and never changes; the newest of a path is what commands see, read-only. A file
is taken away by a version that says so, and comes back by another one.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import OuterRef, Subquery
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation
from agents.models.agent import Agent
from conversations.models.conversation import Conversation


class SharedVersionQuerySet(models.QuerySet["SharedVersion"]):
    def of(self, conversation: Conversation) -> Self:
        """Those that the conversation's agent shares in its organisation."""
        return self.of_agent(conversation.organisation_id, conversation.agent_version.agent_id)

    def of_agent(self, organisation: int, agent: int) -> Self:
        return self.filter(organisation=organisation, agent=agent)

    def current(self) -> Self:
        """The newest version of each path that is still shared."""
        newest = SharedVersion.objects.filter(
            organisation=OuterRef("organisation"), agent=OuterRef("agent"), path=OuterRef("path")
        ).order_by("-number")
        return self.filter(pk=Subquery(newest.values("pk")[:1]), removed=False).order_by("path")


class SharedVersion(models.Model):
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="shared_versions")
    path = models.CharField(max_length=500)
    number = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64, blank=True)
    content = models.BinaryField()
    removed = models.BooleanField(_("shared no more"), default=False)
    """From this version on there is no such file; it has no content and no hash."""
    restored_from = models.PositiveIntegerField(null=True)
    """The number of the version it brings back."""
    conversation = models.ForeignKey(
        Conversation, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Where it was promoted."""
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """Whom the agent worked for when it was promoted."""
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SharedVersionQuerySet.as_manager()

    class Meta:
        ordering = ["path", "number"]
        verbose_name = _("version of a shared file")
        verbose_name_plural = _("versions of shared files")
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "agent", "path", "number"], name="shared_version_unique"
            )
        ]

    def __str__(self) -> str:
        return f"{self.path} {self.number}"


class SharedDraft(models.Model):
    """That a conversation has staged a path, and from which version."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="shared_drafts"
    )
    path = models.CharField(max_length=500)
    base = models.PositiveIntegerField()
    """The version it was staged from; 0 for a new file."""
    removal = models.BooleanField(default=False)
    """Promoting it takes the file away."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "path"], name="shared_draft_unique")
        ]

    def __str__(self) -> str:
        return self.path
