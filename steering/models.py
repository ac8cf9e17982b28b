"""Steering files: standing instructions in Markdown, of an organisation and of agents as they work in it.

Those of a workspace are files there (`workspacefiles`); of them stands here only which words somebody
trusted.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from agents.models import Agent
from conversations.models import Conversation


class SteeringFileQuerySet(models.QuerySet["SteeringFile"]):
    def visible_to(self, user: User) -> Self:
        """Those of her organisations, but of agents that are others' own."""
        mine = self.filter(organisation__memberships__user=user)
        return mine.filter(
            models.Q(agent=None) | models.Q(agent__in=Agent.objects.visible_to(user).values("pk"))
        )

    def for_work(self, organisation_id: int, agent_id: int) -> Self:
        """The organisation's first, then that of the agent there."""
        rows = self.filter(organisation=organisation_id)
        wanted = models.Q(agent=None) | models.Q(agent=agent_id)
        return rows.filter(wanted).order_by(models.F("agent").asc(nulls_first=True))


class SteeringFile(models.Model):
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="steering_files"
    )
    agent = models.ForeignKey(
        Agent, on_delete=models.CASCADE, null=True, blank=True, related_name="steering_files"
    )
    """Null: it is for all agents."""
    text = models.TextField(_("text"))
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    changed_at = models.DateTimeField(auto_now=True)

    objects = SteeringFileQuerySet.as_manager()

    class Meta:
        verbose_name = _("steering file")
        verbose_name_plural = _("steering files")
        ordering = ["organisation", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation"],
                condition=models.Q(agent=None),
                name="one_steering_file_an_organisation",
            ),
            models.UniqueConstraint(
                fields=["organisation", "agent"], name="one_steering_file_an_agent"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.organisation}: {self.agent or '*'}"


class TrustedFile(models.Model):
    """That somebody read a file of a conversation's workspace, and lets its words steer the agent."""

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="trusted_files"
    )
    path = models.CharField(max_length=200)
    sha256 = models.CharField(max_length=64)
    """Of the file as she read it: other words are not trusted."""
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("trusted file")
        verbose_name_plural = _("trusted files")
        ordering = ["conversation", "path"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "path"], name="one_trust_a_file_of_a_workspace"
            )
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}: {self.path}"
