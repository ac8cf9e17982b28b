"""Where MCP servers may be: judged as it is written when it is stored, and as it resolves at each connection.

Plain http, and what lies inside this network, only where the operator lists it.
"""

from __future__ import annotations

import re
from urllib.parse import SplitResult

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import AddressRefused, Invalid, TooLarge
from net.addresses import METADATA_NAMES, Address, is_inside_by_name, parse_address
from net.hostlists import Entry, entries_with_ports, is_listed, why_refused
from reading.hostnames import ascii_name, split_address

URL_LENGTH = 500
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


def check_url(url: str) -> str:
    """The address in one spelling. Invalid, on `url`, with the rule that it breaks. No name is looked up."""
    url = url.strip()
    if len(url) > URL_LENGTH:
        raise TooLarge(
            _("The address is longer than %(limit)d characters.") % {"limit": URL_LENGTH},
            field="url",
            hint=_("Shorten it."),
        )
    try:
        parts = split_address(url)
        host = ascii_name((parts.hostname or "").lower().removesuffix("."))
        port = parts.port
    except ValueError:
        raise _none() from None
    odd = re.search(r"[\s\x00-\x1f\x7f\\]", url) or parts.fragment or "@" in parts.netloc
    address = parse_address(host)
    if odd or parts.scheme not in {"https", "http"} or not host:
        raise _none()
    if address is None and (not _NAME.fullmatch(host) or host in METADATA_NAMES):
        raise _none()
    usual = 443 if parts.scheme == "https" else 80
    inside = is_inside_by_name(host) if address is None else None
    listed = is_listed(host, address, port or usual, _listed())
    if address is not None:
        inside = why_refused(host, address, port or usual, _listed()) is not None
        listed = listed and not inside
    if (inside or parts.scheme == "http") and not listed:
        raise Invalid(
            _("Plain http, and addresses inside this server's network, are not allowed."),
            field="url",
            hint=_("Ask the operator to list host and port in AGENTSITE_MCP_PRIVATE_HOSTS."),
        )
    shown = f"[{host}]" if ":" in host else host
    netloc = shown if port in (None, usual) else f"{shown}:{port}"
    return SplitResult(parts.scheme, netloc, parts.path or "/", parts.query, "").geturl()


def judge(host: str, address: Address, port: int) -> None:
    """Raises AddressRefused; it does not tell what a name means inside this network."""
    if why_refused(host, address, port, _listed()):
        raise AddressRefused(
            _(
                "The address of the MCP server leads to a private or local address, which is refused."
            ),
            hint=_(
                "Check it, or ask the operator to list it, with its port, in"
                " AGENTSITE_MCP_PRIVATE_HOSTS."
            ),
        )


def host_of(url: str) -> str:
    return split_address(url).netloc


def _listed() -> tuple[Entry, ...]:
    return entries_with_ports(settings.AGENTSITE_MCP_PRIVATE_HOSTS)


def _none() -> Invalid:
    return Invalid(
        _("This is not an address of an MCP server."),
        field="url",
        hint=_("Type it like https://mcp.example.org/mcp, without a user or fragment."),
    )
