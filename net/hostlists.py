"""An operator's list of hosts inside the network that something may connect to all the same.

An entry is a name, an address or a network, and may end in a port: `ollama.internal:11434`,
`10.1.0.0/16`, `[::1]:8000`. What no list opens is said in `net.addresses`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_network

from net.addresses import NEVER, Address, Network, Sort, parse_address, reached, sort_of

_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class Entry:
    host: str
    """In lower case; empty for a network."""
    network: Network | None
    port: int | None
    """None: every port."""

    @classmethod
    def parse(cls, written: str) -> Entry:
        """Raises ValueError that says what is wrong with it."""
        host, port = _without_port(written.strip().lower().removesuffix("."))
        address = parse_address(host)
        if address is not None:
            meant = reached(address)
            return cls("", ip_network(meant), port)
        try:
            return cls("", ip_network(host.strip("[]"), strict=False), port)
        except ValueError:
            pass
        if not _NAME.fullmatch(host):
            raise ValueError(f"“{written}” is no name, address or network")
        return cls(host, None, port)

    def spells(self, host: str) -> bool:
        """Whether it names this very host (in lower case): the name, or the one address that it is. What
        else leads to the same machine does not count."""
        if self.network is None:
            return self.host == host
        address = parse_address(host)
        return address is not None and self.network == ip_network(reached(address))

    def covers(self, host: str, address: Address | None, port: int) -> bool:
        if self.port not in (None, port):
            return False
        if self.network is None:
            return self.host == host
        return (
            address is not None
            and address.version == self.network.version
            and address in self.network
        )


def parse_entries(written: Iterable[str]) -> tuple[Entry, ...]:
    return tuple(Entry.parse(one) for one in written if one.strip())


def entries_with_ports(written: Iterable[str]) -> tuple[Entry, ...]:
    """For lists that open hosts to people: what names no port opens nothing. A check at the start says so
    (`faults_of`)."""
    return tuple(entry for entry in parse_entries(written) if entry.port is not None)


def faults_of(written: Iterable[str], *, networks: bool = True) -> Iterator[str]:
    """What is wrong with entries that are to name their ports, each in a sentence; without `networks`
    also that one is no single host."""
    for one in written:
        try:
            entry = Entry.parse(one)
        except ValueError as problem:
            yield f"{problem}."
            continue
        if entry.port is None:
            yield f"“{one}” names no port: everything on that host would be within reach."
        elif not networks and entry.network is not None and entry.network.num_addresses > 1:
            yield f"“{one}” is a network: each of its hosts is to be named by itself."


def is_listed(host: str, address: Address | None, port: int, entries: Iterable[Entry]) -> bool:
    """Whether an entry names the host, or the address it leads to, and the port. Case, brackets and a final
    dot of the host do not count."""
    name = host.strip("[]").lower().removesuffix(".")
    meant = reached(address) if address is not None else None
    return any(entry.covers(name, meant, port) for entry in entries)


def why_refused(host: str, address: Address, port: int, entries: Iterable[Entry]) -> Sort | None:
    """What `address`, to which `host` leads, is that nothing may be sent there; None: it may."""
    sort = sort_of(address)
    if sort is Sort.PUBLIC:
        return None
    if sort in NEVER or reached(address).is_unspecified:
        return sort
    return None if is_listed(host, address, port, entries) else sort


def _without_port(written: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(\[[^\]]*\]|[^:]*):([0-9]{1,5})", written)
    if match is None:
        return written, None
    port = int(match[2])
    if not 1 <= port <= 65_535:
        raise ValueError(f"“{written}” names no port between 1 and 65535")
    return match[1], port
