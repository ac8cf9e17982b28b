"""Vaults: a person's secrets for other services, in one organisation.

What is secret of a credential is sealed as one text and opened only by `conversations.bearers` and
`vaults.oauth`; who may store, change and remove one is `actions.vaults`' and `actions.credentials`' question.
"""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Organisation, User
from harness.ids import new_id

NAME_LIMIT = 255
KEY_LIMIT = 520


def new_vault_id() -> str:
    return new_id("vlt")


def new_credential_id() -> str:
    return new_id("vcrd")


class VaultQuerySet(models.QuerySet["Vault"]):
    def visible_to(self, user: User) -> Self:
        """The person's own, in organisations she still belongs to. Nobody else's, for nobody."""
        if not user.is_active:
            return self.none()
        return self.filter(owner=user, organisation__memberships__user=user)

    def in_force(self) -> Self:
        return self.filter(archived_at=None)


class Vault(models.Model):
    uid = models.CharField(max_length=40, unique=True, default=new_vault_id, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="vaults")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="vaults"
    )
    display_name = models.CharField(_("name"), max_length=NAME_LIMIT)
    metadata = models.JSONField(default=dict)
    """What programs note on it: names and texts."""
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    archived_at = models.DateTimeField(_("archived at"), null=True)

    objects = VaultQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("vault")
        verbose_name_plural = _("vaults")
        indexes = [models.Index(fields=["owner", "organisation"], name="vault_of_person")]

    def __str__(self) -> str:
        return self.uid


class VaultCredentialQuerySet(models.QuerySet["VaultCredential"]):
    def visible_to(self, user: User) -> Self:
        return self.filter(vault__in=Vault.objects.visible_to(user))

    def in_force(self) -> Self:
        return self.filter(archived_at=None, vault__archived_at=None)


class VaultCredential(models.Model):
    class Kind(models.TextChoices):
        STATIC_BEARER = "static_bearer", _("bearer token")
        MCP_OAUTH = "mcp_oauth", _("OAuth access token")

    uid = models.CharField(max_length=40, unique=True, default=new_credential_id, editable=False)
    vault = models.ForeignKey(Vault, on_delete=models.CASCADE, related_name="credentials")
    display_name = models.CharField(_("name"), max_length=NAME_LIMIT, blank=True)
    kind = models.CharField(_("kind"), max_length=20, choices=Kind)
    url = models.CharField(_("address"), max_length=500)
    """As it was given. It never changes."""
    key = models.CharField(max_length=KEY_LIMIT, editable=False)
    """The address in one spelling: what the credential is for, once among those in force."""
    details: Any = models.JSONField(default=dict, editable=False)
    """What may be shown of its kind: `vaults.auth` says what."""
    sealed = models.TextField(editable=False)
    """The secrets, sealed as one text; empty once it is archived."""
    metadata = models.JSONField(default=dict)
    refreshing_until = models.DateTimeField(null=True, editable=False)
    """While a process exchanges its refresh token: when that counts as lost."""
    last_used_at = models.DateTimeField(_("last used at"), null=True, editable=False)
    """To the minute."""
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)
    archived_at = models.DateTimeField(_("archived at"), null=True)

    objects = VaultCredentialQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        verbose_name = _("vault credential")
        verbose_name_plural = _("vault credentials")
        constraints = [
            models.UniqueConstraint(
                fields=["vault", "key"],
                condition=Q(archived_at__isnull=True),
                name="vault_credential_once",
            )
        ]

    def __str__(self) -> str:
        return self.uid
