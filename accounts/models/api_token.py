"""A program's key to the API doors: one person's or service account's, in one organisation.

The secret is hashed by knox and shown once. Making, rotating and revoking is
`accounts.actions.tokens`'; whom a presented secret belongs to, `accounts.api.authentication`'s.
"""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from knox.models import AbstractAuthToken

from accounts.models.organisation import Organisation, Role
from accounts.models.user import User
from harness.ids import new_id

SECRET_PREFIX = "ags_"  # noqa: S105 - how every secret begins, so that scanners and people know one


class TokenScope(models.TextChoices):
    """What a token may be used for. None implies another. Rows may hold older ones, which open nothing."""

    CONVERSATIONS_READ = "conversations:read", _("Read conversations")
    CONVERSATIONS_WRITE = "conversations:write", _("Start and continue conversations")
    APPROVALS_DECIDE = "approvals:decide", _("Decide approvals")
    AGENTS_MANAGE = "agents:manage", _("Manage agents and environments")
    SKILLS_MANAGE = "skills:manage", _("Manage skills")
    VAULTS_MANAGE = "vaults:manage", _("Manage one's own vaults")
    ADMIN = "admin", _("Administer the organisation")


MANAGING_SCOPES = frozenset(
    {
        TokenScope.APPROVALS_DECIDE,
        TokenScope.AGENTS_MANAGE,
        TokenScope.SKILLS_MANAGE,
        TokenScope.ADMIN,
    }
)
"""Scopes under which a member of staff keeps the powers of staff; any other token has none."""


def new_api_token_uid() -> str:
    return new_id("apikey")


class ApiTokenQuerySet(models.QuerySet["ApiToken"]):
    def visible_to(self, user: User | AnonymousUser) -> Self:
        """One's own, and those of the service accounts of organisations one manages."""
        if not user.is_authenticated:
            return self.none()
        managed = Organisation.objects.filter(
            memberships__user=user, memberships__role__in=[role for role in Role if role.manages]
        )
        theirs = models.Q(user__kind=User.Kind.SERVICE, organisation__in=managed)
        return self.filter(models.Q(user=user) | theirs)

    def valid_at(self, now: datetime) -> Self:
        unexpired = models.Q(expiry=None) | models.Q(expiry__gt=now)
        return self.filter(unexpired, revoked_at=None)


class ApiToken(AbstractAuthToken):
    """knox gives `digest` (the primary key), `token_key` (its beginning), `created` and `expiry`."""

    uid = models.CharField(
        _("public id"), max_length=40, unique=True, default=new_api_token_uid, editable=False
    )
    name = models.CharField(_("name"), max_length=80)
    organisation = models.ForeignKey(
        Organisation,
        on_delete=models.CASCADE,
        related_name="api_tokens",
        verbose_name=_("organisation"),
    )
    scopes = models.JSONField(_("scopes"), default=list)
    audience = models.CharField(_("only for"), max_length=20, blank=True, editable=False)
    """The one door at which it counts, for a client that was let in there: its secrets are with `mcpclients`,
    and the one hashed here opens nothing. Empty: every door, by the secret that its person was shown."""
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        editable=False,
        related_name="+",
        verbose_name=_("created by"),
    )
    last_used_at = models.DateTimeField(_("last used at"), null=True, editable=False)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, editable=False)
    reads_until = models.FloatField(default=0, editable=False)
    """Seconds since 1970 up to which the requests so far use up the allowed rate."""
    writes_until = models.FloatField(default=0, editable=False)
    day = models.DateField(null=True, editable=False)
    """The day, in UTC, of which `day_requests` is the count."""
    day_requests = models.PositiveIntegerField(_("requests today"), default=0, editable=False)

    objects = ApiTokenQuerySet.as_manager()  # type: ignore[misc, assignment]
    """In the place of knox's, which makes secrets: that is the action's."""

    class Meta:
        verbose_name = _("API token")
        verbose_name_plural = _("API tokens")
        ordering = ["-created", "pk"]

    def __str__(self) -> str:
        return f"{self.name} ({self.shown_prefix})"

    @property
    def shown_prefix(self) -> str:
        """The beginning of the secret, by which its holder tells it from others."""
        return f"{self.token_key[: len(SECRET_PREFIX) + 6]}…"

    @property
    def is_valid(self) -> bool:
        """Neither revoked nor expired; whether its person still may, authentication asks."""
        return self.revoked_at is None and (self.expiry is None or self.expiry > timezone.now())

    def has_scope(self, scope: str) -> bool:
        return scope in self.scopes
