"""Dead letters: turns that ended in a failure, kept until somebody or something settles them.

`deadletters.projection` writes them with the log; `actions.deadletters` replays and discards.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, Role, User
from accounts.staff import has_staff_permission
from conversations.models.conversation import Conversation
from conversations.models.run import Run

CHANGE = "deadletters.change_deadletter"


class DeadLetterQuerySet(models.QuerySet["DeadLetter"]):
    def manageable_by(self, user: User) -> Self:
        """All for staff with the permission; else those of organisations the person manages."""
        if has_staff_permission(user, CHANGE):
            return self
        if not user.is_active:
            return self.none()
        managing = [role for role in Role if role.manages]
        return self.filter(
            organisation__memberships__user=user, organisation__memberships__role__in=managing
        )

    def open(self) -> Self:
        return self.filter(state=DeadLetter.State.OPEN)

    def unsettled(self) -> Self:
        """Open, or being done again right now; at most one of these a conversation."""
        return self.filter(state__in=UNSETTLED)


class DeadLetter(models.Model):
    class State(models.TextChoices):
        OPEN = "open", _("open")
        REPLAYED = "replayed", _("being done again")
        RESOLVED = "resolved", _("resolved")
        DISCARDED = "discarded", _("discarded")

    class Cause(models.TextChoices):
        TRANSIENT = "transient", _("passing")
        PERMANENT = "permanent", _("permanent")
        INTERNAL = "internal", _("internal")

    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="dead_letters"
    )
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="dead_letters"
    )
    run = models.ForeignKey(Run, on_delete=models.SET_NULL, null=True, related_name="+")
    """The one that gave up."""
    state = models.CharField(_("state"), max_length=10, choices=State, default=State.OPEN)
    code = models.CharField(_("code"), max_length=60)
    """See `harness.errors`; `internal` and `run_lost` are this server's own faults."""
    cause = models.CharField(_("cause"), max_length=10, choices=Cause)
    attempts = models.PositiveIntegerField(_("attempts"), default=0)
    """Failed model calls, or lost runs where none was made, over all tries since it was opened."""
    replays = models.PositiveIntegerField(_("replays"), default=0)
    request_seq = models.PositiveBigIntegerField(null=True)
    """Place in the log of the model request that failed last; null when it came to none."""
    error_seq = models.PositiveBigIntegerField()
    """Place in the log of the error that ended the turn."""
    message = models.TextField(_("message"), blank=True)
    hint = models.TextField(_("hint"), blank=True)
    provider = models.CharField(_("provider"), max_length=50, blank=True)
    model = models.CharField(_("model"), max_length=100, blank=True)
    created_at = models.DateTimeField(_("since"), auto_now_add=True)
    failed_at = models.DateTimeField(_("failed at"))
    """The last time."""
    closed_at = models.DateTimeField(_("closed at"), null=True)
    closed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        verbose_name=_("closed by"),
    )
    """Who discarded it, or had the turn done again; empty when the conversation went on by itself."""
    reason = models.TextField(_("reason"), blank=True)
    """Why it was discarded, in that person's words."""

    objects = DeadLetterQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("dead letter")
        verbose_name_plural = _("dead letters")
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(state__in=["open", "replayed"]),
                name="one_unsettled_dead_letter",
            )
        ]
        indexes = [
            models.Index(fields=["state", "cause", "code"], name="dead_letter_counts"),
            models.Index(fields=["organisation", "state"], name="dead_letter_organisation"),
        ]

    def __str__(self) -> str:
        return f"{self.code} · {self.conversation_id}"


UNSETTLED = (DeadLetter.State.OPEN, DeadLetter.State.REPLAYED)
