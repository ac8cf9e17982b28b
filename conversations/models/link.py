"""Links by which a conversation is read as it stood when they were made. The secret in one is kept as a hash.

What one shows is `chat.presentation.frozen`'s, who makes and ends them `actions.links`'.
"""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Membership, User
from accounts.persons import MANAGING
from harness.ids import new_id

from .conversation import Conversation


def new_link_uid() -> str:
    return new_id("lnk")


class LinkQuerySet(models.QuerySet["Link"]):
    def visible_to(self, user: User) -> Self:
        """Those she made, and all in organisations that she manages."""
        managed = Membership.objects.filter(user=user, role__in=MANAGING).values("organisation")
        return self.filter(
            Q(made_by=user, conversation__organisation__memberships__user=user)
            | Q(conversation__organisation__in=managed)
        ).distinct()

    def alive(self, now: datetime | None = None) -> Self:
        """Those that open: not revoked or past their time, of conversations whose owner is still there."""
        return self.filter(
            revoked_at=None,
            expires_at__gt=now or timezone.now(),
            conversation__in=Conversation.objects.of_members(),
        )


class Link(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_link_uid, editable=False)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="links")
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="links"
    )
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    title = models.CharField(max_length=200, blank=True)
    """The conversation's as it was then."""
    seq = models.PositiveBigIntegerField()
    """The last event that it shows anything of."""
    details = models.BooleanField(default=False)
    """Whether it shows what calls were given and brought."""
    members_only = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    objects = LinkQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        verbose_name = _("link")
        verbose_name_plural = _("links")

    def __str__(self) -> str:
        return self.uid
