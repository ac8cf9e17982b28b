"""Clients register themselves, staff block them, and those that nobody uses are forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.actions.tokens import revoke_each
from accounts.models import ApiToken, User
from accounts.staff import has_staff_permission
from audit.models import AuditEntry
from audit.record import about_setting
from harness.errors import Forbidden, LimitReached, NotFound
from mcpclients.described import described
from mcpclients.models import CHANGE, Connection, McpClient

Action = AuditEntry.Action


SPARED = timedelta(minutes=15)
"""For so long nobody's registration gives way to another: meanwhile a person decides."""


@transaction.atomic
def register_client(*, said: Mapping[str, Any]) -> McpClient:
    """Anybody may: it opens nothing until a person lets the client in. Raises Invalid with the field,
    NotFound where that is switched off, LimitReached while too many wait for somebody to use them."""
    if not (settings.AGENTSITE_MCP_OAUTH and settings.AGENTSITE_MCP_REGISTRATION):
        raise NotFound(_("Clients do not register themselves here."))
    told = described(said)
    _make_room()
    return McpClient.objects.create(name=told.name, redirect_uris=told.redirect_uris)


def _make_room() -> None:
    """The oldest give way, so that whoever fills all places shuts others out for minutes alone."""
    waiting = McpClient.objects.waiting()
    # Two at once may be one too many, which harms nobody.
    over = waiting.count() + 1 - settings.AGENTSITE_MCP_CLIENTS
    if not settings.AGENTSITE_MCP_CLIENTS or over <= 0:
        return
    old = waiting.filter(created_at__lt=timezone.now() - SPARED).order_by("created_at", "pk")
    # Whoever lets one of them in meanwhile holds its row.
    held = old.select_for_update(of=("self",), skip_locked=True).values_list("pk", flat=True)
    chosen = list(held[:over])
    if len(chosen) < over:
        raise LimitReached("Too many clients are registered that nobody uses.")
    McpClient.objects.filter(pk__in=chosen).delete()


@transaction.atomic
def block_client(*, actor: User, client: McpClient) -> None:
    """End all that people let it do, and have nobody let it in any more. Raises Forbidden; a second time
    changes nothing."""
    held = _held(actor, client)
    if held.blocked_at is not None:
        return
    held.blocked_at = timezone.now()
    held.save(update_fields=["blocked_at"])
    rows = ApiToken.objects.filter(mcp_connection__client=held).valid_at(timezone.now())
    ended = revoke_each(actor=actor, tokens=rows)
    _audited(Action.MCP_CLIENT_BLOCKED, actor, held, tokens=ended)


@transaction.atomic
def unblock_client(*, actor: User, client: McpClient) -> None:
    """People may let it in again; what was ended stays ended. Raises Forbidden."""
    held = _held(actor, client)
    if held.blocked_at is None:
        return
    held.blocked_at = None
    held.save(update_fields=["blocked_at"])
    _audited(Action.MCP_CLIENT_UNBLOCKED, actor, held)


@transaction.atomic
def forget_unused() -> None:
    """Registrations that nobody has used for so many days, and what is left of connections that ended so
    long ago."""
    moment = timezone.now() - timedelta(days=settings.AGENTSITE_MCP_CLIENT_DAYS)
    ended = Q(token__revoked_at__lte=moment) | Q(token__expiry__lte=moment)
    Connection.objects.filter(ended).delete()
    # Whoever lets one of them in meanwhile holds its row; who has just done so is seen by the second look.
    unused = McpClient.objects.unused_since(moment)
    held = list(
        unused.select_for_update(of=("self",), skip_locked=True).values_list("pk", flat=True)
    )
    McpClient.objects.unused_since(moment).filter(pk__in=held).delete()


def _held(actor: User, client: McpClient) -> McpClient:
    if not has_staff_permission(actor, CHANGE):
        raise Forbidden(_("Only staff with the permission for it may block clients."))
    held = McpClient.objects.select_for_update().filter(pk=client.pk).first()
    if held is None:
        raise NotFound(_("There is no such client."))
    return held


def _audited(action: AuditEntry.Action, actor: User, client: McpClient, **details: Any) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=None,
        client=client.client_id,
        name=client.name,
        **details,
    )
