"""Where a webhook may go: judged as it is written when it is stored, and as it resolves at each attempt.

This server stands inside a network; an endpoint's address is what somebody typed into a form. So names
are resolved here, judged, and connected to at the very addresses that were judged.
"""

from __future__ import annotations

import logging
import re
from ipaddress import ip_address
from urllib.parse import SplitResult

from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Invalid, TooLarge
from net import hostlists, lookups
from net.addresses import Address, is_inside_by_name, parse_address
from reading.hostnames import ascii_name, split_address

logger = logging.getLogger("agentsite.egress")

URL_LENGTH = 500
LOOK_UP_SECONDS = 5.0
STORING_SECONDS = 2.0
"""The same while somebody waits for the answer to a form: it is looked up again at every attempt."""

_NAME = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")


class AddressRefused(Exception):
    """A name leads where webhooks may not go. Nothing was connected to.

    Its words are for the organisation: they do not tell what a name means inside this network.
    """

    def __init__(self, host: str, setting: str) -> None:
        """`setting`: where the operator lists what is reached all the same."""
        super().__init__(f"{host} leads to a private address")
        self.words = f"{self}, which is refused: the operator can list it in {setting}"


class AddressUnknown(Exception):
    """A name leads nowhere now."""


def check_url(url: str) -> str:
    """The address in one spelling; Invalid, on `url`, with the rule that it breaks.

    A name is looked up as well. One that cannot be resolved now, or soon, may be stored: it is judged
    again at every attempt.
    """
    url = url.strip()
    if len(url) > URL_LENGTH:
        raise TooLarge(
            _("The address is longer than %(limit)d characters.") % {"limit": URL_LENGTH},
            field="url",
            hint=_("Shorten it."),
        )
    parts, host, port = _parse(url)
    literal = parse_address(host)
    if literal is None:
        if is_inside_by_name(host) and not hostlists.is_listed(host, None, port, _listed()):
            raise _inside(host)
        _check_resolved(host, port)
    elif why := hostlists.why_refused(host, literal, port, _listed()):
        raise _inside(f"{host}: it is {why.value}")
    shown = f"[{host}]" if ":" in host else host
    default = {"https": 443, "http": 80}[parts.scheme]
    netloc = shown if port == default else f"{shown}:{port}"
    return SplitResult(parts.scheme, netloc, parts.path or "/", parts.query, "").geturl()


async def judged_addresses(host: str, port: int) -> list[str]:
    """What `host` leads to now, all of it allowed. Raises AddressRefused and AddressUnknown."""
    try:
        return await lookups.judged_addresses(host, port, _judge, seconds=LOOK_UP_SECONDS)
    except lookups.UnknownHost as problem:
        raise AddressUnknown(str(problem)) from None


def _judge(host: str, address: Address, port: int) -> None:
    if why := hostlists.why_refused(host, address, port, _listed()):
        logger.info("webhook to %s refused: it leads to %s, which is %s", host, address, why.value)
        raise AddressRefused(host, "AGENTSITE_WEBHOOK_PRIVATE_HOSTS")


def _parse(url: str) -> tuple[SplitResult, str, int]:
    try:
        parts = split_address(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = SplitResult("", "", "", "", ""), "", None
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
        name = ascii_name(host)
    except ValueError:
        name = ""
    is_usual = parse_address(name) is None or _is_usual_address(name)
    if not is_usual or (":" not in name and not _NAME.fullmatch(name)):
        raise Invalid(
            _("The address names no host."),
            field="url",
            hint=_("Give a full name, or an IP address in its usual form."),
        )
    return name


def _is_usual_address(name: str) -> bool:
    try:
        ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return True


def _check_resolved(host: str, port: int) -> None:
    try:
        lookups.judged_in_time(host, port, _judge, seconds=STORING_SECONDS)
    except lookups.UnknownHost:
        return
    except AddressRefused as refusal:
        raise _inside(str(refusal)) from None


def _listed() -> tuple[hostlists.Entry, ...]:
    return hostlists.entries_with_ports(settings.AGENTSITE_WEBHOOK_PRIVATE_HOSTS)


def _inside(what: str) -> Invalid:
    return Invalid(
        _("An address inside the server's own network is not allowed (%(what)s).") % {"what": what},
        field="url",
        hint=_("Ask the operator to list it, with its port, in AGENTSITE_WEBHOOK_PRIVATE_HOSTS."),
    )
