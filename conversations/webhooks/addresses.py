"""Where a webhook may go: judged as it is written when it is stored, and as it resolves at each attempt.

This server stands inside a network; an endpoint's address is what somebody typed into a form. So names
are resolved here, judged, and connected to at the very addresses that were judged.
"""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Invalid, TooLarge
from tools_app.sandbox.egress import METADATA, embedded, resolve_by_system, why_unreachable
from tools_app.sandbox.policy import Endpoint

logger = logging.getLogger("agentsite.egress")

Address = IPv4Address | IPv6Address

URL_LENGTH = 500
LOOK_UP_SECONDS = 5.0

_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_PRIVATE_SUFFIXES = (".localhost", ".localdomain", ".local", ".internal", ".lan", ".home.arpa")
_NO_PRIVATE_NETWORK = Endpoint(host="webhook.invalid")


class AddressRefused(Exception):
    """A name leads where webhooks may not go. Nothing was connected to.

    Its words are for the organisation: they do not tell what a name means inside this network.
    """


class AddressUnknown(Exception):
    """A name leads nowhere now."""


def check_url(url: str) -> str:
    """The address in one spelling; Invalid, on `url`, with the rule that it breaks.

    A name is looked up as well. One that cannot be resolved now may be stored: it is judged again
    at every attempt.
    """
    url = url.strip()
    if len(url) > URL_LENGTH:
        raise TooLarge(
            _("The address is longer than %(limit)d characters.") % {"limit": URL_LENGTH},
            field="url",
            hint=_("Shorten it."),
        )
    parts, host, port = _parse(url)
    literal = _literal(host)
    if literal is None and not _is_listed(host):
        if "." not in host or host.endswith(_PRIVATE_SUFFIXES):
            raise _inside(host)
        _check_resolved(host, port)
    elif literal is not None and (why := why_refused(literal, host)):
        raise _inside(f"{host}: {why}")
    shown = f"[{host}]" if ":" in host else host
    default = {"https": 443, "http": 80}[parts.scheme]
    netloc = shown if port == default else f"{shown}:{port}"
    return SplitResult(parts.scheme, netloc, parts.path or "/", parts.query, "").geturl()


def why_refused(address: Address, host: str) -> str:
    """Why nothing is sent to `address`, to which `host` leads; empty if it may be."""
    why = why_unreachable(address, _NO_PRIVATE_NETWORK)
    if not why:
        return ""
    meant = embedded(address) or address
    if meant in METADATA or meant.is_link_local or meant.is_multicast or meant.is_unspecified:
        return why
    return "" if _is_listed(host) or _is_in_listed_network(meant) else why


async def judged_addresses(host: str, port: int) -> list[str]:
    """What `host` leads to now, all of it allowed. Raises AddressRefused and AddressUnknown."""
    try:
        async with asyncio.timeout(LOOK_UP_SECONDS):
            found = await resolve_by_system(host, port)
    except (OSError, UnicodeError, TimeoutError):
        raise AddressUnknown(f"the name {host} cannot be resolved") from None
    return _judge(host, found)


def _judge(host: str, found: Iterable[str]) -> list[str]:
    addresses = list(dict.fromkeys(text.partition("%")[0] for text in found))
    for text in addresses:
        # One bad address among good ones is how names are rebound.
        if why := why_refused(ip_address(text), host):
            logger.info("webhook to %s refused: it leads to %s, and %s", host, text, why)
            raise AddressRefused(f"{host} leads to a private address")
    if not addresses:
        raise AddressUnknown(f"the name {host} has no address")
    return addresses


def _parse(url: str) -> tuple[SplitResult, str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if re.search(r"[\s\x00-\x1f\x7f\\]", url) or not host or parts.fragment or "@" in parts.netloc:
        raise Invalid(
            _("This is not an address of a webhook."),
            field="url",
            hint=_("Type it like https://hooks.example.org/agents, without a user or fragment."),
        )
    allowed = ("https", "http") if settings.AGENTSITE_WEBHOOK_ALLOW_HTTP else ("https",)
    if parts.scheme not in allowed:
        raise Invalid(
            _("Webhooks go to https only.") if len(allowed) == 1 else _("Webhooks go to http."),
            field="url",
            hint=_("Begin the address with https://"),
        )
    return parts, _plain(host), port or (443 if parts.scheme == "https" else 80)


def _plain(host: str) -> str:
    host = host.lower().removesuffix(".")
    try:
        name = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        name = ""
    if _literal(name) is None and (not _NAME.fullmatch(name) or _looks_like_a_number(name)):
        raise Invalid(
            _("The address names no host."),
            field="url",
            hint=_("Give a full name, or an IP address in its usual form."),
        )
    return name


def _looks_like_a_number(name: str) -> bool:
    """Old spellings of addresses, which some resolvers still read: 127.1, 0x7f.1, 2130706433."""
    return bool(re.fullmatch(r"\d+|0x[0-9a-f]*", name.rpartition(".")[2]))


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _check_resolved(host: str, port: int) -> None:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return
    try:
        _judge(host, [str(entry[4][0]) for entry in found])
    except AddressRefused as refusal:
        raise _inside(str(refusal)) from None


def _inside(what: str) -> Invalid:
    return Invalid(
        _("An address inside the server's own network is not allowed (%(what)s).") % {"what": what},
        field="url",
        hint=_("Ask the operator to list it in AGENTSITE_WEBHOOK_PRIVATE_HOSTS."),
    )


def _is_listed(host: str) -> bool:
    return host in {listed.strip().lower() for listed in settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS}


def _is_in_listed_network(address: Address) -> bool:
    for listed in settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS:
        try:
            network = ip_network(listed.strip(), strict=False)
        except ValueError:
            continue
        if address.version == network.version and address in network:
            return True
    return False
