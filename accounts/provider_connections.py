"""How a model service is reached whose address somebody typed who does not run this server, and whether
that is a service of the deployment under another name.

What such an address may be is judged in `provider_addresses`; what its spelling says of who pays, in
`provider_keys`.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING

from django.conf import settings
from django.core.cache import cache
from django.utils.translation import gettext as _

from accounts.provider_addresses import Server, judge_connection, server_at, server_of
from accounts.provider_keys import ResolvedKey
from harness.errors import AddressRefused
from net.addresses import Address
from net.lookups import UnknownHost, judged_in_time

if TYPE_CHECKING:
    import httpx2

LOOK_UP_SECONDS = 2.0
"""A run is kept for at most, once for each name."""
KNOWN_SECONDS = 60
"""Where names of the deployment's services lead is looked up this often: every run would ask the same."""


@dataclass(frozen=True, slots=True)
class JudgedConnections:
    """Makes clients that connect only where people's own keys may lead."""

    closed: frozenset[Server] = frozenset()
    """Addresses of services of the deployment. Their name led elsewhere when it was looked up who pays,
    and may have changed its mind."""

    def __call__(self, timeout: httpx2.Timeout) -> httpx2.AsyncClient:
        from net.guarded import guarded_client  # noqa: PLC0415 - heavy, imported on first use

        seconds = settings.AGENTSITE_PROVIDER_REPLY_SECONDS
        return guarded_client(self.judge, timeout=timeout, seconds=seconds)

    def judge(self, host: str, address: Address, port: int) -> None:
        judge_connection(host, address, port)
        if server_at(address, port) in self.closed:
            raise AddressRefused(
                _("The base URL of the provider key now leads to a service of this server."),
                hint=_("Send the message again: it then counts as this server's."),
            )


@dataclass(frozen=True, slots=True)
class Way:
    """To a service whose address is no operator's."""

    server_pays: bool
    connections: JudgedConnections


def way_of(key: ResolvedKey) -> Way:
    """Where `key` may connect and who pays for that, as names lead now. It waits for name servers.

    A name of a service of the deployment that leads nowhere could be any: then the server pays.
    """
    if key.server_pays or not key.open_services:
        return Way(key.server_pays, JudgedConnections())
    ours: set[Server] = set()
    for server in key.open_services:
        leads_to = _known(server)
        if not leads_to:
            return Way(server_pays=True, connections=JudgedConnections())
        ours |= leads_to
    there = server_of(key.base_url)
    if there is not None and not ours.isdisjoint(_looked_up(there)):
        return Way(server_pays=True, connections=JudgedConnections())
    return Way(server_pays=False, connections=JudgedConnections(frozenset(ours)))


def _known(server: Server) -> frozenset[Server]:
    host, port = server
    slot = f"provider-service:{host}:{port}"
    known: frozenset[Server] | None = cache.get(slot)
    if known is None and (known := _looked_up(server)):
        cache.set(slot, known, KNOWN_SECONDS)
    return known or frozenset()


def _looked_up(server: Server) -> frozenset[Server]:
    """Its addresses; none while it cannot be resolved."""
    host, port = server
    try:
        found = judged_in_time(host, port, _any_address, seconds=LOOK_UP_SECONDS)
    except UnknownHost:
        return frozenset()
    return frozenset(server_at(ip_address(address), port) for address in found)


def _any_address(_host: str, _address: Address, _port: int) -> None:
    """Nothing is connected to here."""
