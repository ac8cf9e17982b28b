"""Which versions of skills a conversation has: fixed when it begins, and told when somebody adds one; and
which skills of its workspace somebody trusted, as they were then.

Skills and their versions are `skills_app`'s. A row stays when a skill is stopped: it says what was used.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import AgentVersion
from conversations.models import Conversation
from skills_app.models import Skill, SkillVersion
from skills_app.names import NAME_LIMIT


class SkillSet(models.Model):
    """That the skills of a conversation's agent were fixed, and what could not be had."""

    conversation = models.OneToOneField(
        Conversation, on_delete=models.CASCADE, related_name="+", primary_key=True
    )
    agent_version = models.ForeignKey(
        AgentVersion, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    problems = models.JSONField(default=list)

    class Meta:
        verbose_name = _("skills of a conversation")
        verbose_name_plural = _("skills of conversations")

    def __str__(self) -> str:
        return str(self.pk)


class UsedSkillQuerySet(models.QuerySet["UsedSkill"]):
    def of(self, conversation: Conversation) -> Self:
        return self.filter(conversation=conversation).select_related("version", "skill")


class UsedSkill(models.Model):
    class By(models.TextChoices):
        AGENT = "agent", _("the agent’s")
        REQUIRED = "required", _("required by another")
        PERSON = "person", _("added by a person")

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    skill = models.ForeignKey(Skill, on_delete=models.CASCADE, related_name="+")
    version = models.ForeignKey(SkillVersion, on_delete=models.RESTRICT, related_name="+")
    by = models.CharField(max_length=10, choices=By)
    at = models.DateTimeField(auto_now_add=True)

    objects = UsedSkillQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("skill of a conversation")
        verbose_name_plural = _("skills of a conversation")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "skill"], name="used_skill_once")
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}:{self.version_id}"


class TrustedSkill(models.Model):
    """That somebody read a skill in a conversation's workspace, and lets it instruct the agent as it was.

    The row stays while the folder says something else: what changed is held against it.
    """

    PLACE_LIMIT = 400

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="trusted_skills", db_index=False
    )
    place = models.CharField(max_length=PLACE_LIMIT)
    """Its folder, in the workspace."""
    name = models.CharField(max_length=NAME_LIMIT)
    description = models.TextField()
    hidden = models.BooleanField(default=False)
    """Agents are not told of it; a person asks for it by name."""
    digest = models.CharField(max_length=64)
    """Of all its files as she saw them: with another byte it is not trusted."""
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("trusted skill")
        verbose_name_plural = _("trusted skills")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "place"], name="one_trust_a_skill_of_a_workspace"
            ),
            models.UniqueConstraint(
                fields=["conversation", "name"], name="one_trusted_skill_of_a_name"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.conversation_id}: {self.place}"

    def files(self) -> dict[str, bytes]:
        """By path, as they were trusted."""
        rows = TrustedSkillFile.objects.filter(skill=self)
        return {row.path: bytes(row.content) for row in rows}


class TrustedSkillFile(models.Model):
    skill = models.ForeignKey(
        TrustedSkill, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    path = models.CharField(max_length=1_024)
    content = models.BinaryField()

    class Meta:
        verbose_name = _("file of a trusted skill")
        verbose_name_plural = _("files of trusted skills")
        ordering = ["path"]
        constraints = [
            models.UniqueConstraint(fields=["skill", "path"], name="trusted_skill_file_path")
        ]

    def __str__(self) -> str:
        return self.path
