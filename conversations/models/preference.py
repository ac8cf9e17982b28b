"""What a person prefers for new conversations. When she is told of something is `notices`'."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation
from agents.models.agent import Agent
from agents.models.environment import Environment


class Preference(models.Model):
    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preference"
    )
    default_agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True)
    default_environment = models.ForeignKey(
        Environment, on_delete=models.SET_NULL, null=True, blank=True
    )

    first_steps_put_away = models.BooleanField(default=False)
    """Whether the first page is without the list of what to do first."""

    def __str__(self) -> str:
        return f"preferences of {self.user}"


class Defaults(models.Model):
    """What new conversations begin with in an organisation or, without one, on the whole server."""

    organisation = models.OneToOneField(
        Organisation,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="conversation_defaults",
        help_text=_("Empty: for everybody on this server."),
    )
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True)
    environment = models.ForeignKey(Environment, on_delete=models.SET_NULL, null=True, blank=True)

    class Meta:
        verbose_name = _("defaults of new conversations")
        verbose_name_plural = _("defaults of new conversations")
        constraints = [
            # A unique column knows no null that equals another.
            models.UniqueConstraint(
                models.Value(1),
                condition=models.Q(organisation=None),
                name="one_row_of_server_defaults",
            )
        ]

    def __str__(self) -> str:
        return str(self.organisation or _("this server"))
