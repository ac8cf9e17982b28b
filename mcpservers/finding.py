"""Which MCP server an address of a page means."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.requests import SignedInRequest
from harness.errors import NotFound

from .models import McpServer


def find_server(request: SignedInRequest, uid: str) -> McpServer:
    rows = McpServer.objects.visible_to(request.user).select_related(
        "organisation", "owner", "agent", "conversation"
    )
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such MCP server."))
    return found
