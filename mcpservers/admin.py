"""MCP servers in the admin: all of them and their tools, to look at, switch and look through.

Added, changed and released they are on their own pages. The actions call what those call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import AutocompleteSelectFilter

from accounts.administration.readonly import ReadOnlyAdmin
from accounts.administration.requests import actor_of
from accounts.models import User
from accounts.staff import has_staff_permission
from harness.errors import Declined

from .actions import servers as actions
from .models import CHANGE, McpServer, McpTool


class McpServerAdmin(ReadOnlyAdmin):
    actions = ["switch_on", "switch_off", "look"]  # type: ignore[assignment]
    list_display = [
        "name",
        "url",
        "command",
        "organisation",
        "owner",
        "disabled_at",
        "failing_since",
    ]
    list_filter = [("organisation", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ["organisation", "owner"]
    search_fields = ["=uid", "name", "url", "command"]
    search_help_text = _("The id of a server, or a part of its name, address or command")
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "name",
        "url",
        "command",
        "arguments",
        "organisation",
        "owner",
        "timeout_seconds",
        "through_provider",
        "disabled_at",
        "listed_at",
        "failing_since",
        "last_error",
        "last_output",
        "protocol",
        "software",
        "created_by",
        "created_at",
    ]

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), CHANGE)

    @admin.action(description=_("Switch on"), permissions=["settle"])
    def switch_on(self, request: HttpRequest, servers: QuerySet[McpServer]) -> None:
        _each(request, servers, lambda actor, one: _switch(actor, one, enabled=True))

    @admin.action(description=_("Switch off"), permissions=["settle"])
    def switch_off(self, request: HttpRequest, servers: QuerySet[McpServer]) -> None:
        _each(request, servers, lambda actor, one: _switch(actor, one, enabled=False))

    @admin.action(description=_("Look at them now"), permissions=["settle"])
    def look(self, request: HttpRequest, servers: QuerySet[McpServer]) -> None:
        _each(request, servers, lambda actor, one: actions.look_again(actor=actor, server=one))


class McpToolAdmin(ReadOnlyAdmin):
    list_display = ["name", "server", "state", "released_by", "released_at"]
    list_filter = ["state"]
    list_select_related = ["server", "released_by"]
    search_fields = ["name", "=server__uid"]
    search_help_text = _("A part of a tool's name, or the id of its server")
    ordering = ["-id"]
    fields = readonly_fields = [
        "server",
        "remote_name",
        "name",
        "state",
        "fault",
        "pinned",
        "seen",
        "released_by",
        "released_at",
        "failed_at",
        "failure",
    ]


def _switch(actor: User, server: McpServer, *, enabled: bool) -> None:
    actions.change_server(actor=actor, server=server, enabled=enabled)


def _each(
    request: HttpRequest, rows: QuerySet[McpServer], do: Callable[[User, McpServer], Any]
) -> None:
    for row in rows:
        try:
            why = do(actor_of(request), row)
        except Declined as problem:
            messages.error(request, f"{row.name}: {problem.message}")
        else:
            if why:
                messages.error(request, f"{row.name}: {why}")
            else:
                messages.success(request, row.name)


admin.site.register(McpServer, McpServerAdmin)
admin.site.register(McpTool, McpToolAdmin)
