"""Where a provider key may be sent: which hosts a base URL may name, by the scope of its key.

The address is judged as it is written when it is stored, and what it leads to whenever a request is
made (`why_refused`): names change their minds, and so do rules and settings.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.models import Scope
from harness.errors import Invalid

Address = IPv4Address | IPv6Address

_METADATA_NAMES = {
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.com",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
}
_METADATA_ADDRESSES = {
    ip_address(written)
    for written in (
        "169.254.169.254",
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure
        "192.0.0.192",  # Oracle
        "fd00:ec2::254",  # Amazon
        "fd20:ce::254",  # Google
    )
}
_PRIVATE_SUFFIXES = (".localhost", ".localdomain", ".local", ".internal", ".lan", ".home.arpa")
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")


def check_host(host: str, scope: Scope) -> None:
    """Invalid, on `base_url`, unless keys of this scope may be sent to `host` (as urlsplit gives it).

    Link-local addresses and metadata services, where clouds keep the machine's own credentials,
    are refused to everybody. A person and an organisation may name private hosts only if the
    operator lists them in AGENTSITE_PRIVATE_PROVIDER_HOSTS: this server stands inside the network.
    An address counts as what a client takes it for: short, octal, hexadecimal and whole-number
    IPv4, and IPv4 inside of IPv6. Raises Invalid for a host that is neither address nor ASCII name.
    """
    host = _plain(host)
    address = _parse_address(host)
    if address is None and not _HOST_NAME.fullmatch(host):
        raise Invalid(
            _("The base URL names no host."),
            field="base_url",
            hint=_("Write the name in letters, digits, dots and hyphens; others as xn--…"),
        )
    meant = list(_meanings(address)) if address is not None else []
    if host in _METADATA_NAMES or any(one in _METADATA_ADDRESSES for one in meant):
        raise _refusal(_("The address of a metadata service is not allowed."))
    if any(one.is_link_local for one in meant):
        raise _refusal(_("A link-local address is not allowed."))
    if scope is Scope.DEPLOYMENT:
        return
    if any(one.is_multicast or one.is_unspecified for one in meant):
        raise _refusal(_("This address is no single server's."))
    if _is_private(host, meant) and (meant[-1] if meant else host) not in _listed():
        raise Invalid(
            _("An address inside the server's own network is not allowed."),
            field="base_url",
            hint=_("Ask the operator to list it in AGENTSITE_PRIVATE_PROVIDER_HOSTS."),
        )


def why_refused(host: str, address: str) -> str:
    """Why no request with a person's or an organisation's key is sent to `address`, to which `host`
    leads now; empty if it may be. The operator's own keys may go anywhere but where nobody's may."""
    found = _parse_address(_plain(address))
    if found is None:
        return _("The base URL leads to no address.")
    meant = list(_meanings(found))
    if any(one in _METADATA_ADDRESSES or one.is_link_local for one in meant):
        return _("The base URL leads to a link-local address or a metadata service.")
    if any(one.is_multicast or one.is_unspecified for one in meant):
        return _("The base URL leads to an address that is no single server's.")
    if _is_private(host, meant) and not {_plain(host), meant[-1]} & _listed():
        return _("The base URL leads to an address inside the server's own network.")
    return ""


def _refusal(message: str) -> Invalid:
    return Invalid(
        message, field="base_url", hint=_("Give the server's own name or another address.")
    )


def _plain(host: str) -> str:
    return host.strip().strip("[]").lower().removesuffix(".")


def _parse_address(host: str) -> Address | None:
    if ":" in host:
        host = host.partition("%")[0]
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        # Resolvers still read the old spellings: 127.1, 0x7f.1, 0177.0.0.1, 2130706433.
        return IPv4Address(socket.inet_aton(host)) if re.fullmatch(r"[0-9a-fx.]+", host) else None
    except OSError:
        return None


def _meanings(address: Address) -> Iterator[Address]:
    """The address and, last, the IPv4 address that it carries, if it carries one."""
    yield address
    if isinstance(address, IPv4Address):
        return
    carried = address.ipv4_mapped or address.sixtofour
    low = int(address) & 0xFFFFFFFF
    if carried is None and (address in _NAT64 or (address in _COMPATIBLE and low > 1)):
        carried = IPv4Address(low)
    if carried is not None:
        yield carried


def _is_private(host: str, meant: list[Address]) -> bool:
    """Whether it lies inside a network by its looks; a name without a dot is nobody's in public."""
    if meant:
        last = meant[-1]
        return not last.is_global or (isinstance(last, IPv6Address) and last.is_site_local)
    return "." not in host or host.endswith(_PRIVATE_SUFFIXES)


def _listed() -> set[Address | str]:
    hosts = [_plain(host) for host in settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS]
    addresses = {host: _parse_address(host) for host in hosts}
    return {[*_meanings(found)][-1] if found else host for host, found in addresses.items()}
