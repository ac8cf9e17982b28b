"""What an IP address is to this server: the one judge for everything that connects on somebody's word.

It knows every spelling that a resolver reads, every IPv4 address that an IPv6 address carries, and which
addresses are this machine's own: what it serves to itself there it may not serve to others. Which of the
addresses inside may be reached all the same is the caller's list (`net.hostlists`).
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from pathlib import Path

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Sort(StrEnum):
    """Its value completes a sentence: “it is …”."""

    PUBLIC = "a public address"
    PRIVATE = "a private address"
    MACHINE = "an address of this machine"
    LINK_LOCAL = "a link-local address"
    MULTICAST = "a multicast address"
    METADATA = "a metadata address"


NEVER = frozenset({Sort.LINK_LOCAL, Sort.MULTICAST, Sort.METADATA})
"""What no list opens."""

METADATA = frozenset(
    ip_address(written)
    for written in (
        "169.254.169.254",
        "169.254.170.2",  # Amazon's containers
        "169.254.170.23",
        "100.100.100.200",  # Alibaba
        "168.63.129.16",  # Azure; looks public
        "192.0.0.192",  # Oracle
        "fd00:c1::a9fe:a9fe",
        "fd00:ec2::254",  # Amazon
        "fd00:ec2::23",
        "fd20:ce::254",  # Google
        "fd00:42::42",  # Scaleway
    )
)
"""Where clouds hand out a machine's own credentials."""

METADATA_NAMES = frozenset(
    {
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
)

_PRIVATE_SUFFIXES = (".localhost", ".localdomain", ".local", ".internal", ".lan", ".home.arpa")
_UNICAST = IPv6Network("2000::/3")
"""All that is assigned to the public IPv6 internet so far (RFC 4291, 2.4)."""
_LATER = tuple(map(ip_network, ("3fff::/20", "192.88.99.0/24", "192.0.0.0/24")))
"""Reserved (RFC 9637, RFC 7526, RFC 6890), which the tables of older Pythons do not know whole."""
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")
_LAST_32_BITS = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""NAT64 by its well-known prefix, and the deprecated form ::a.b.c.d."""
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
"""NAT64 by a prefix of the network's own (RFC 8215), as long as the network likes."""
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})


def parse_address(host: str) -> Address | None:
    """The address that `host` is, brackets and zone aside, in any spelling that resolvers take; None
    for a name. 127.1, 0x7f.1, 0177.0.0.1 and 2130706433 are addresses."""
    host = host.strip().removeprefix("[").removesuffix("]").removesuffix(".")
    if ":" in host:
        host = host.partition("%")[0]
    try:
        return ip_address(host)
    except ValueError:
        pass
    try:
        return (
            IPv4Address(socket.inet_aton(host)) if re.fullmatch(r"[0-9a-fA-FxX.]+", host) else None
        )
    except OSError:
        return None


def meanings(address: Address) -> Iterator[Address]:
    """The address and the IPv4 addresses that it may carry, the one that is reached last."""
    if address in _LOCAL_NAT64:
        yield from _at_each_length(int(address))
    yield address
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _SIX_TO_FOUR:
        yield IPv4Address((number >> 80) & 0xFFFFFFFF)
    elif address in _TEREDO:
        yield IPv4Address(~number & 0xFFFFFFFF)
    elif _carries_in_last_bits(address):
        yield IPv4Address(number & 0xFFFFFFFF)


def _at_each_length(number: int) -> Iterator[IPv4Address]:
    """What the lengths of a prefix make of it (RFC 6052, 2.2), addresses of no network left out. Shorter
    than 96 bits they leave the octet behind the 64th empty."""
    without_octet = (number >> 64 << 56) | (number & (1 << 56) - 1)
    for carried in (*(without_octet >> shift for shift in (40, 32, 24)), number):
        if (carried & 0xFFFFFFFF) >> 24:
            yield IPv4Address(carried & 0xFFFFFFFF)


def meant_by(host: str) -> frozenset[str]:
    """Every address that `host` may mean, each in its plain spelling; a name means itself."""
    address = parse_address(host)
    return frozenset({host} if address is None else map(str, meanings(address)))


def is_held(address: Address) -> bool:
    """Whether the address is one of this machine's: nobody can listen at another's. Nothing is sent. Asked
    each time, since addresses come and go."""
    family = socket.AF_INET if isinstance(address, IPv4Address) else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
        if not _listens_anywhere(address.version):
            return True
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ip_address(probe.getsockname()[0]) == address  # it would talk to itself
    except (OSError, ValueError):
        return False


def _listens_anywhere(version: int) -> bool:
    """Whether the kernel was told to let programs listen at addresses that are still to come."""
    try:
        return Path(f"/proc/sys/net/ipv{version}/ip_nonlocal_bind").read_text().strip() != "0"
    except OSError:
        return False


def sort_of(address: Address, *, held: Callable[[Address], bool] = is_held) -> Sort:
    """The worst of what it means."""
    sort_of_each = {one: _plain_sort(one) for one in meanings(address)}
    sorts = {*sort_of_each.values()}
    if len(sorts) > 1 and _is_wrapping(address):
        sorts.discard(sort_of_each[address])  # only what is inside the wrapping is reached
    if any(sort is Sort.PUBLIC and held(one) for one, sort in sort_of_each.items()):
        sorts.add(Sort.MACHINE)
    worst_first = (
        *(Sort.METADATA, Sort.LINK_LOCAL, Sort.MULTICAST, Sort.MACHINE),
        *(Sort.PRIVATE, Sort.PUBLIC),
    )
    return next(sort for sort in worst_first if sort in sorts)


def reached(address: Address) -> Address:
    """The address as lists name it: the IPv4 address inside, if there is one."""
    return [*meanings(address)][-1]


def is_inside_by_name(host: str) -> bool:
    """Whether a name, in lower case, is nobody's in public: without a dot, or below a private suffix."""
    return "." not in host or host.endswith(_PRIVATE_SUFFIXES)


def _is_wrapping(address: Address) -> bool:
    return isinstance(address, IPv6Address) and (
        address.ipv4_mapped is not None or _is_in(address, _LAST_32_BITS)
    )


def _carries_in_last_bits(address: IPv6Address) -> bool:
    if _is_in(address, _LAST_32_BITS):
        return int(address) > 1
    return (int(address) >> 32) & 0xFFFFFFFF in _ISATAP


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _plain_sort(address: Address) -> Sort:
    if address in METADATA:
        return Sort.METADATA
    if address.is_loopback or address.is_unspecified:
        return Sort.MACHINE
    if address.is_link_local:
        return Sort.LINK_LOCAL
    if address.is_multicast:
        return Sort.MULTICAST
    is_assigned = isinstance(address, IPv4Address) or address in _UNICAST
    if address.is_global and is_assigned and not _is_in(address, _LATER):
        return Sort.PUBLIC
    return Sort.PRIVATE
