"""The headers that authorise this server at an MCP server: sealed at rest, opened for a connection alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables

from accounts import vault
from harness.errors import Invalid

from .models import McpClient, McpFlow, McpServer

MOST_HEADERS = 10
LONGEST = 8_000
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_TAKEN = frozenset(
    {
        "accept", "accept-encoding", "connection", "content-length", "content-type", "cookie",
        "host", "last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version",
        "mcp-session-id", "origin", "proxy-authorization", "te", "trailer", "transfer-encoding",
        "upgrade",
    }
)  # fmt: skip
"""Those that are the protocol's, or the transport's."""


@sensitive_variables("headers")
def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Raises Invalid, on `headers`, naming no value."""
    if len(headers) > MOST_HEADERS:
        raise _refused(_("There are more than %(most)d headers.") % {"most": MOST_HEADERS})
    known: set[str] = set()
    for name, value in headers.items():
        if name.lower() in known:
            raise _refused(_("“%(name)s” is no header to be set.") % {"name": name[:64]})
        known.add(name.lower())
        if not _HEADER.fullmatch(name) or name.lower() in _TAKEN or name.lower().startswith("mcp-"):
            raise _refused(_("“%(name)s” is no header to be set.") % {"name": name[:64]})
        plain = value.isascii() and value.isprintable()
        if not plain or not 1 <= len(value) <= LONGEST or value != value.strip():
            raise _refused(
                _("The value of “%(name)s” is not one line of plain characters.") % {"name": name}
            )
    return dict(headers)


@sensitive_variables("headers")
def sealed_headers(headers: Mapping[str, str]) -> str:
    """Raises NotConfigured where nothing can be sealed."""
    return vault.seal(json.dumps(dict(headers))) if headers else ""


def headers_of(server: McpServer) -> dict[str, str]:
    """Raises NotConfigured where they cannot be opened."""
    return json.loads(vault.open_sealed(server.sealed)) if server.sealed else {}


def reseal_headers() -> int:
    """And what clients and flows keep."""
    count = 0
    kept: Any = (McpServer.objects, McpClient.objects, McpFlow.objects)
    for rows in kept:
        for row in rows.exclude(sealed="").select_for_update().order_by("pk"):
            row.sealed = vault.reseal(row.sealed)
            row.save(update_fields=["sealed"])
            count += 1
    return count


def _refused(message: str) -> Invalid:
    return Invalid(message, field="headers", hint=_("Write one a line, as Name: value."))
