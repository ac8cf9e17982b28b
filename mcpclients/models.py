"""Clients of `/mcp` that register themselves, and what people let them do: the person's token (`ApiToken`,
which bounds, counts, lists and ends it) with the secrets of one client.

Every secret is stored as a hash. Letting in is `actions.consents`', exchanging secrets `exchange`'s.
"""

from __future__ import annotations

from datetime import datetime
from typing import Self

from django.db import models
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import ApiToken
from harness.ids import new_id
from reading.hostnames import split_address

AUDIENCE = "mcp"
"""What the token of a client says it is for."""
ID_LENGTH = 500
CHANGE = "mcpclients.change_mcpclient"


def new_client_id() -> str:
    return new_id("mcpclient")


class McpClientQuerySet(models.QuerySet["McpClient"]):
    def waiting(self) -> Self:
        """Registered themselves, and nobody has let one of them in. A blocked one waits for nobody."""
        return self.filter(read_at=None, blocked_at=None, connections=None)

    def unused_since(self, moment: datetime) -> Self:
        """Registered before, and nobody has one of them let in. A blocked one stays, to stay blocked."""
        letting = Connection.objects.filter(client=models.OuterRef("pk"), token__revoked_at=None)
        in_force = letting.filter(models.Q(token__expiry=None) | models.Q(token__expiry__gt=moment))
        return self.filter(created_at__lt=moment, blocked_at=None).exclude(models.Exists(in_force))


class McpClient(models.Model):
    """What a program says of itself: nobody has checked who made it."""

    client_id = models.CharField(
        _("client id"), max_length=ID_LENGTH, unique=True, default=new_client_id, editable=False
    )
    """Given by us, or the address of the document in which the client tells of itself."""
    name = models.CharField(_("what it calls itself"), max_length=80)
    redirect_uris = models.JSONField(_("where its answers go"), default=list)
    keys = models.JSONField(_("keys by which it signs"), null=True, editable=False)
    """A JWK set of public keys. Null for a client that signs nothing: it is known by its id alone."""
    read_at = models.DateTimeField(_("document read at"), null=True, editable=False)
    """Null for one that registered itself."""
    created_at = models.DateTimeField(_("registered at"), default=timezone.now, editable=False)
    blocked_at = models.DateTimeField(_("blocked at"), null=True, editable=False)

    objects = McpClientQuerySet.as_manager()

    class Meta:
        verbose_name = _("client of /mcp")
        verbose_name_plural = _("clients of /mcp")
        ordering = ["-id"]
        indexes = [models.Index(fields=["created_at"], name="mcp_client_age")]

    def __str__(self) -> str:
        return self.name

    @property
    def document_host(self) -> str:
        """Who vouches for it; empty for one that registered itself, for which nobody does."""
        return split_address(self.client_id).netloc if self.read_at else ""


class ConnectionQuerySet(models.QuerySet["Connection"]):
    def in_force(self, now: datetime) -> Self:
        """Of people who may come in, where they still belong, by clients that are not blocked: what holds
        for every token (`accounts.api.authentication`), and the client's part."""
        return self.filter(
            models.Q(token__expiry=None) | models.Q(token__expiry__gt=now),
            client__blocked_at=None,
            token__audience=AUDIENCE,
            token__revoked_at=None,
            token__user__is_active=True,
            token__organisation__memberships__user_id=F("token__user_id"),
        )


class Connection(models.Model):
    """One client let in by one person, from her consent until the token ends. It goes with the token."""

    token = models.OneToOneField(
        ApiToken, on_delete=models.CASCADE, primary_key=True, related_name="mcp_connection"
    )
    client = models.ForeignKey(McpClient, on_delete=models.CASCADE, related_name="connections")
    ends_at = models.DateTimeField()
    """Until when she let it in; before the code is redeemed its token ends with the code."""

    code_hash = models.CharField(max_length=64, unique=True)
    redirect_uri = models.CharField(max_length=ID_LENGTH)
    challenge = models.CharField(max_length=64)
    redeemed_at = models.DateTimeField(null=True)

    access_hash = models.CharField(max_length=64, unique=True, null=True)
    access_ends_at = models.DateTimeField(null=True)
    family_hash = models.CharField(max_length=64, unique=True, null=True)
    """Of the part that all refresh tokens of it begin with: one that begins so and is not the newest was used
    before, by its client or a thief."""
    refresh_hash = models.CharField(max_length=64, null=True)

    objects = ConnectionQuerySet.as_manager()

    class Meta:
        verbose_name = _("connection of a client")
        verbose_name_plural = _("connections of clients")

    def __str__(self) -> str:
        return self.token_id[:8]
