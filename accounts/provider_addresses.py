"""Where a provider key may be sent: which hosts a base URL may name, by the scope of its key.

The address is judged as it is written when it is stored, and what it leads to at every connection
(`judge_connection`): names change their minds, and so do rules and settings. What an address is says
`net.addresses`. Inside the network people reach only hosts that the operator's list spells as they do, so
that the spelling tells what leads inside, and to whom that belongs (`leads_inside`).
"""

from __future__ import annotations

import re

from django.conf import settings
from django.utils.translation import gettext as _

from accounts.models import Scope
from harness.errors import AddressRefused, Invalid
from net.addresses import (
    METADATA_NAMES,
    Address,
    Sort,
    is_inside_by_name,
    parse_address,
    reached,
    sort_of,
)
from net.hostlists import Entry, entries_with_ports, is_listed, why_refused
from reading.hostnames import split_address

Server = tuple[str, int]
"""Host and port."""

_HERE = "localhost"
_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


def check_host(host: str, port: int, scope: Scope) -> None:
    """Invalid, on `base_url`, unless keys of this scope may be sent to `host` (as urlsplit gives it).

    Link-local addresses and metadata services, where clouds keep the machine's own credentials,
    are refused to everybody. A person and an organisation may name private hosts only if the
    operator lists them under this name or address, port and all, in AGENTSITE_PRIVATE_PROVIDER_HOSTS:
    this server stands inside the network. Raises Invalid for a host that is neither address nor ASCII
    name.
    """
    host = _plain(host)
    address = parse_address(host)
    if address is None and not _HOST_NAME.fullmatch(host):
        raise Invalid(
            _("The base URL names no host."),
            field="base_url",
            hint=_("Write the name in letters, digits, dots and hyphens; others as xn--…"),
        )
    sort = sort_of(address) if address is not None else Sort.PUBLIC
    if host in METADATA_NAMES or sort is Sort.METADATA:
        raise _refusal(_("The address of a metadata service is not allowed."))
    if sort is Sort.LINK_LOCAL:
        raise _refusal(_("A link-local address is not allowed."))
    if scope is Scope.DEPLOYMENT:
        return
    if address is not None and (sort is Sort.MULTICAST or reached(address).is_unspecified):
        raise _refusal(_("This address is no single server's."))
    if _is_inside(host) and not is_listed(host, address, port, _listed(host)):
        raise Invalid(
            _("An address inside the server's own network is not allowed."),
            field="base_url",
            hint=_(
                "Ask the operator to list it, with its port, in AGENTSITE_PRIVATE_PROVIDER_HOSTS."
            ),
        )


def server_of(base_url: str) -> Server | None:
    """Host and port that a base URL names, the same however both are spelt; None for none."""
    named = _named_by(base_url)
    if named is None:
        return None
    host, port = named
    address = parse_address(host)
    if address is not None:
        return server_at(address, port)
    if host.endswith(f".{_HERE}"):
        host = _HERE
    return host, _one_for_both_schemes(port)


def server_at(address: Address, port: int) -> Server:
    """The same for an address."""
    meant = reached(address)
    here = sort_of(meant) is Sort.MACHINE
    return _HERE if here else str(meant), _one_for_both_schemes(port)


def leads_inside(base_url: str) -> bool:
    """Whether what people and organisations reach under a base URL is of this network, the deployment's.

    Names that are not spelt in the operator's list lead inside nobody's key (`judge_connection`), so
    none is looked up. What the operator lists is inside, wherever its name leads.
    """
    named = _named_by(base_url)
    if named is None:
        return False
    host, port = named
    return _is_inside(host) or is_listed(host, parse_address(host), port, _listed(host))


def judge_connection(host: str, address: Address, port: int) -> None:
    """AddressRefused if a person's or an organisation's key may not be sent to `address`, to which `host`
    leads now. It does not tell what the name means inside this network."""
    host = _plain(host)
    if why_refused(host, address, port, _listed(host)):
        raise AddressRefused(
            _(
                "The base URL of the provider key leads to a private or local address, which is refused."
            ),
            hint=_(
                "Check it, or ask the operator to list it, with its port, in"
                " AGENTSITE_PRIVATE_PROVIDER_HOSTS."
            ),
        )


def _refusal(message: str) -> Invalid:
    return Invalid(
        message, field="base_url", hint=_("Give the server's own name or another address.")
    )


def _plain(host: str) -> str:
    return host.strip().strip("[]").lower().removesuffix(".")


def _named_by(base_url: str) -> Server | None:
    try:
        parts = split_address(base_url.strip())
        host, port = _plain(parts.hostname or ""), parts.port
    except ValueError:
        return None
    return (host, port or (80 if parts.scheme == "http" else 443)) if host else None


def _one_for_both_schemes(port: int) -> int:
    """Schemes and paths are nobody's mark: one service answers under several."""
    return 443 if port == 80 else port


def _is_inside(host: str) -> bool:
    """As it is spelt."""
    address = parse_address(host)
    return is_inside_by_name(host) if address is None else sort_of(address) is not Sort.PUBLIC


def _listed(host: str) -> list[Entry]:
    """What the operator's list says of this very host. A network, or an address that a name leads to,
    would let people give what the deployment runs names of their own."""
    entries = entries_with_ports(settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS)
    return [entry for entry in entries if entry.spells(host)]
