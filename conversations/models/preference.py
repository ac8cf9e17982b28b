"""What a person prefers: for new conversations, and when to be mailed."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from .agent import Agent
from .environment import Environment

DEFAULT_MAIL_MINUTES = 5


class Preference(models.Model):
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preference"
    )
    default_agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True)
    default_environment = models.ForeignKey(
        Environment, on_delete=models.SET_NULL, null=True, blank=True
    )

    mail_when_waiting = models.BooleanField(default=True)
    """Whether to be mailed about what waits for an answer and was not seen."""
    mail_after_minutes = models.PositiveSmallIntegerField(default=DEFAULT_MAIL_MINUTES)

    def __str__(self) -> str:
        return f"preferences of {self.user}"
