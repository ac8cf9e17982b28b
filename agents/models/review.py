"""Reviews: a member asks that her organisation be offered a version of her own agent.

Who may decide which says `actions.reviews`. What was asked for and what came of it stays.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.staff import has_staff_permission
from harness.ids import new_id

from .agent import Agent, AgentVersion

DECIDE_ANY = "agents.change_agent"
"""What staff need to review for any organisation."""


def new_review_id() -> str:
    return new_id("review")


class AgentReviewQuerySet(models.QuerySet["AgentReview"]):
    def visible_to(self, user: User) -> Self:
        """What one asked for where one still belongs, and what waits or waited in organisations one
        manages; all of it for staff who may change agents."""
        if not user.is_active:
            return self.none()
        if has_staff_permission(user, DECIDE_ANY):
            return self
        managed = Organisation.objects.filter(
            memberships__user=user, memberships__role__in=[role for role in Role if role.manages]
        )
        own = Q(asked_by=user, agent__organisation__memberships__user=user)
        return self.filter(Q(agent__organisation__in=managed) | own).distinct()

    def waiting(self) -> Self:
        return self.filter(state=AgentReview.State.WAITING)


class AgentReview(models.Model):
    class State(models.TextChoices):
        WAITING = "waiting", _("waits")
        APPROVED = "approved", _("approved")
        REFUSED = "refused", _("refused")
        WITHDRAWN = "withdrawn", _("withdrawn")

    uid = models.CharField(max_length=40, unique=True, default=new_review_id, editable=False)
    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="reviews")
    version = models.ForeignKey(AgentVersion, on_delete=models.CASCADE, related_name="reviews")
    shared_version = models.ForeignKey(
        AgentVersion, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    """What the organisation was offered when it was asked for; empty: nothing."""
    name = models.CharField(_("name"), max_length=100)
    description = models.CharField(_("description"), max_length=500, blank=True)
    """Both as they were when it was asked for: they are approved with the version."""
    note = models.CharField(_("note"), max_length=500, blank=True)
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.WAITING)
    reason = models.CharField(_("reason"), max_length=500, blank=True)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    asked_at = models.DateTimeField(auto_now_add=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    decided_at = models.DateTimeField(null=True)

    objects = AgentReviewQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["agent"], condition=Q(state="waiting"), name="one_waiting_review_per_agent"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} v{self.version.number}: {self.get_state_display()}"
