"""Which versions of skills a conversation has: fixed when it begins, and told when somebody adds one.

Skills and their versions are `skills_app`'s. A row stays when a skill is stopped: it says what was used.
"""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import AgentVersion
from conversations.models import Conversation
from skills_app.models import Skill, SkillVersion


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
