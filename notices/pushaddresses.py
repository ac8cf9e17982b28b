"""Where pushes may be sent: a browser's word is judged as it is written when it is stored, and as it resolves
at each connection.

Anybody can post any address as that of a push service. Plain http, and what lies inside this network, only
where the operator lists it.
"""

from __future__ import annotations

import re

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import AddressRefused, Invalid, TooLarge
from net.addresses import METADATA_NAMES, Address, is_inside_by_name, parse_address
from net.hostlists import Entry, entries_with_ports, is_listed, why_refused
from reading.hostnames import split_address

LONGEST = 1_000
"""Characters of the address; push services' own have up to about 500."""
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


def check_endpoint(url: str) -> str:
    """The address as it is. TooLarge and Invalid, on `endpoint`, with the rule that it breaks. No name is
    looked up."""
    if len(url) > LONGEST:
        raise TooLarge(
            _("The address is longer than %(limit)d characters.") % {"limit": LONGEST},
            field="endpoint",
            hint=_("Shorten it."),
        )
    try:
        parts = split_address(url)
        host = (parts.hostname or "").lower().removesuffix(".")
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise _none() from None
    odd = re.search(r"[^\x21-\x7e]|\\", url) or parts.fragment or "@" in parts.netloc
    # No push service is known by a bare address of IPv6, nor can one be signed for.
    if odd or parts.scheme not in {"https", "http"} or not host or ":" in host:
        raise _none()
    address = parse_address(host)
    listed = is_listed(host, address, port, _listed())
    if address is not None:
        inside = why_refused(host, address, port, _listed()) is not None
        listed = listed and not inside
    elif not _NAME.fullmatch(host) or host in METADATA_NAMES:
        raise _none()
    else:
        inside = is_inside_by_name(host)
    if (inside or parts.scheme == "http") and not listed:
        raise Invalid(
            _("Plain http, and addresses inside this server's network, are not allowed."),
            field="endpoint",
            hint=_("Ask the operator to list host and port in AGENTSITE_PUSH_PRIVATE_HOSTS."),
        )
    return url


def judge(host: str, address: Address, port: int) -> None:
    """Raises AddressRefused; it does not tell what a name means inside this network."""
    if why_refused(host, address, port, _listed()):
        raise AddressRefused(
            _(
                "The address of the push service leads to a private or local address, which is refused."
            ),
            hint=_("Ask the operator to list it in AGENTSITE_PUSH_PRIVATE_HOSTS."),
        )


def audience_of(url: str) -> str:
    """Whom a signature is for: the address without its path (RFC 8292, 2)."""
    parts = split_address(url)
    return f"{parts.scheme}://{parts.netloc}"


def _listed() -> tuple[Entry, ...]:
    return entries_with_ports(settings.AGENTSITE_PUSH_PRIVATE_HOSTS)


def _none() -> Invalid:
    return Invalid(
        _("This is not an address of a push service."),
        field="endpoint",
        hint=_("Have the browser sign up again."),
    )
