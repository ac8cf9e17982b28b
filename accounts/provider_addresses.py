"""Where a provider key may be sent: which hosts a base URL may name, by the scope of its key.

The address is judged as it is written when it is stored, and what it leads to at every connection
(`judge_connection`): names change their minds, and so do rules and settings. What an address is says
`net.addresses`.
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

_HOST_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


def check_host(host: str, port: int, scope: Scope) -> None:
    """Invalid, on `base_url`, unless keys of this scope may be sent to `host` (as urlsplit gives it).

    Link-local addresses and metadata services, where clouds keep the machine's own credentials,
    are refused to everybody. A person and an organisation may name private hosts only if the
    operator lists them, port and all, in AGENTSITE_PRIVATE_PROVIDER_HOSTS: this server stands inside
    the network. Raises Invalid for a host that is neither address nor ASCII name.
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
    is_inside = sort is not Sort.PUBLIC if address is not None else is_inside_by_name(host)
    if is_inside and not is_listed(host, address, port, _listed()):
        raise Invalid(
            _("An address inside the server's own network is not allowed."),
            field="base_url",
            hint=_(
                "Ask the operator to list it, with its port, in AGENTSITE_PRIVATE_PROVIDER_HOSTS."
            ),
        )


def judge_connection(host: str, address: Address, port: int) -> None:
    """AddressRefused if a person's or an organisation's key may not be sent to `address`, to which `host`
    leads now. It does not tell what the name means inside this network."""
    if why_refused(_plain(host), address, port, _listed()):
        raise AddressRefused(
            _("The base URL of the provider key leads to an address that is not allowed."),
            hint=_("Check the base URL, or ask the operator to list it."),
        )


def _refusal(message: str) -> Invalid:
    return Invalid(
        message, field="base_url", hint=_("Give the server's own name or another address.")
    )


def _plain(host: str) -> str:
    return host.strip().strip("[]").lower().removesuffix(".")


def _listed() -> tuple[Entry, ...]:
    return entries_with_ports(settings.AGENTSITE_PRIVATE_PROVIDER_HOSTS)
