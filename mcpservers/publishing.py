"""What our own registry tells of the servers that are listed in it (`server.json`), and which those are.

No secret: of an address what `publicurls` leaves, headers and variables by their names alone.
Who lists a server is `actions.servers`' question, the wire is `api.registry`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Q

from accounts.models import Organisation, User
from harness.errors import AgentError
from reading.hostnames import split_address
from sandbox.images import is_image

from .models import McpServer
from .packages import package_of
from .publicurls import public_url
from .secrets import headers_of

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
OFFICIAL = "io.modelcontextprotocol.registry/official"
OURS = "x-agentsite"
_SSE = "2024-11-05"
"""The revision that servers are spoken to by over HTTP with SSE."""


@dataclass(frozen=True, slots=True)
class Listed:
    name: str
    version: str
    updated_at: datetime
    told: dict[str, Any]
    """The whole entry, by the open interface."""


def listed_for(user: User, organisation: Organisation, host: str) -> list[Listed]:
    """The entries of the organisation's servers and everybody's that are switched on and listed, by name;
    of one name the broadest. `host`: of this site. There are few: each scope has a limit."""
    rows = (
        McpServer.objects.visible_to(user)
        .serving(organisation.pk, 0)
        .filter(listed=True, disabled_at=None, owner=None)
        .filter(Q(organisation=None) | Q(organisation=organisation))
    )
    found: dict[str, Listed] = {}
    for server in rows:
        entry = _entry(server, host)
        if entry is not None:
            found.setdefault(entry.name, entry)
    return [found[name] for name in sorted(found)]


def may_be_told(argv: Sequence[str]) -> bool:
    """Whether others can have it: it is at an address, or a package that was installed."""
    return (
        not argv or is_image(argv) or package_of(argv, settings.AGENTSITE_MOUNT_ROOTS) is not None
    )


def _entry(server: McpServer, host: str) -> Listed | None:
    """None: it is a program that is nothing to others."""
    name = server.published_name or f"{_reversed(host)}/{server.name}"
    told: dict[str, Any] = {
        "$schema": SCHEMA,
        "name": name,
        "title": server.name,
        "description": f"The MCP server “{server.name}”.",
        "version": server.published_version or f"{server.updated_at:%Y.%-m.%-d-%H%M%S}",
    }
    secrets = [
        {"name": each, "isRequired": True, "isSecret": True} for each in _names_of_secrets(server)
    ]
    if server.argv:
        package = _package(server)
        if package is None:
            return None
        started = {"transport": {"type": "stdio"}, "environmentVariables": secrets}
        told["packages"] = [{**package, **started}]
    else:
        kind = "sse" if server.protocol == _SSE else "streamable-http"
        url, variables = public_url(server.url)
        more = {"variables": variables} if variables else {}
        told["remotes"] = [{"type": kind, "url": url, "headers": secrets, **more}]
    official = {
        "status": "active",
        "publishedAt": server.created_at.isoformat(),
        "updatedAt": server.updated_at.isoformat(),
        "isLatest": True,
    }
    meta = {OFFICIAL: official, OURS: {"scope": server.scope.value}}
    return Listed(name, told["version"], server.updated_at, {"server": told, "_meta": meta})


def _package(server: McpServer) -> dict[str, Any] | None:
    if is_image(server.argv):
        return {"registryType": "oci", "identifier": server.command}
    found = package_of(server.argv, settings.AGENTSITE_MOUNT_ROOTS)
    if found is None:
        return None
    return {"registryType": found.kind, "identifier": found.name, "version": found.version}


def _names_of_secrets(server: McpServer) -> list[str]:
    try:
        return sorted(headers_of(server))
    except AgentError:
        return []


def _reversed(host: str) -> str:
    """As names of registries begin: `com.example.agents`."""
    known = (
        split_address(settings.AGENTSITE_BASE_URL).hostname if settings.AGENTSITE_BASE_URL else ""
    )
    plain = (known or host.partition(":")[0] or "localhost").strip("[]").replace(":", "-")
    return ".".join(reversed(plain.split(".")))
