"""What counts as one address where people are counted by it."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network

from net.addresses import reached

SUBSCRIBER = 64
"""Bits of an IPv6 address that one subscriber does not choose."""


def neighbourhood(address: str) -> str:
    """Of IPv6 the network of a subscriber, who has all of it for himself. Other text is itself."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    found = reached(found)
    if isinstance(found, IPv6Address):
        return str(ip_network((found, SUBSCRIBER), strict=False).network_address)
    return str(found)
