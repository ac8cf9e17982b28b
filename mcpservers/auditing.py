"""What the audit log is told of MCP servers: never a header."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from audit.models import AuditEntry
from audit.record import about_setting

from .addresses import host_of
from .models import McpServer


def about_server(action: AuditEntry.Action, actor: User, server: McpServer, **details: Any) -> None:
    about_setting(
        action,
        actor=actor,
        organisation_id=server.organisation_id,
        server=server.uid,
        name=server.name,
        host=host_of(server.url),
        command=server.command,
        scope=server.scope.value,
        **details,
    )
