"""Clients of `/mcp` in the admin: all that registered, to look at, block and allow again."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from accounts.administration.readonly import ReadOnlyAdmin
from accounts.administration.requests import actor_of
from accounts.staff import has_staff_permission

from .actions.clients import block_client, unblock_client
from .models import CHANGE, McpClient


class McpClientAdmin(ReadOnlyAdmin):
    actions = ["block", "unblock"]  # type: ignore[assignment]
    list_display = ["name", "redirect_uris", "client_id", "created_at", "blocked_at"]
    search_fields = ["name", "=client_id"]
    search_help_text = _("The id of a client, or a part of its name")
    ordering = ["-id"]
    fields = readonly_fields = [
        "client_id",
        "name",
        "redirect_uris",
        "read_at",
        "created_at",
        "blocked_at",
    ]

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), CHANGE)

    @admin.action(description=_("Block, and end what people let them do"), permissions=["settle"])
    def block(self, request: HttpRequest, clients: QuerySet[McpClient]) -> None:
        _each(request, clients, block_client)

    @admin.action(description=_("Allow again"), permissions=["settle"])
    def unblock(self, request: HttpRequest, clients: QuerySet[McpClient]) -> None:
        _each(request, clients, unblock_client)


def _each(request: HttpRequest, clients: QuerySet[McpClient], do: Callable[..., None]) -> None:
    for client in clients:
        do(actor=actor_of(request), client=client)
        messages.success(request, client.name)


admin.site.register(McpClient, McpClientAdmin)
