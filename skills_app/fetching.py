"""Gets skills from a source elsewhere: its index, then one archive, whole and as the index says, or nothing.

Connections are judged like all that somebody's word leads to. What becomes of a skill is the actions' part.
"""

from __future__ import annotations

import time
from urllib.parse import urljoin, urlsplit

import httpx2
from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Conflict, Declined, Forbidden, Invalid, NotFound
from net.addresses import Address
from net.guarded import guarded_client
from net.hostlists import entries_with_ports, why_refused

from .folder import SkillFolder, read_folder, sha256_of
from .models import SkillSource
from .packing import unpack
from .signedindex import MOST_BYTES, Index, Offered, read_index

INDEX = "/.well-known/agent-skills/index.json"
SECONDS = 30.0
LONGEST_ADDRESS = 2_000


def address_of(text: str) -> str:
    """Where the index of this server or address is. Raises Invalid."""
    if len(text) > LONGEST_ADDRESS:
        raise Invalid(_("The address is too long."), field="source", hint=_("Shorten it."))
    parts = urlsplit(text.strip())
    if parts.scheme not in {"https", "http"} or not parts.hostname or parts.username:
        raise Invalid(
            _("This is no address of a server."),
            field="source",
            hint=_("Write it like https://agents.example.org."),
        )
    return text.strip() if parts.path.endswith(".json") else urljoin(text.strip(), INDEX)


def fetch_index(source: SkillSource) -> Index:
    """What it offers now. Raises as `read_index`, and Declined where it cannot be had."""
    data = _get(source.address, MOST_BYTES)
    return read_index(data, key=source.key, now=time.time(), seen=source.seen)


def offer_in(index: Index, name: str, version: str = "") -> Offered:
    """The version of this skill, or the one that comes first. Raises NotFound."""
    for each in index.skills:
        if each.name == name and version in {"", each.version}:
            return each
    raise NotFound(
        _("The source offers no such skill."),
        hint=_("It offers: %(names)s.")
        % {"names": ", ".join(sorted({each.name for each in index.skills})[:50])},
    )


def fetch_skill(source: SkillSource, offered: Offered) -> SkillFolder:
    """Its files, if every byte is what the index says. Raises Conflict, and Invalid for what is no skill."""
    address = urljoin(source.address, offered.url)
    if urlsplit(address)[:2] != urlsplit(source.address)[:2]:
        raise Invalid(_("The index leads to another server."), field="source")
    data = _get(address, min(offered.size, settings.AGENTSITE_SKILL_BYTES * 2))
    return verified(offered, data)


def verified(offered: Offered, data: bytes) -> SkillFolder:
    """The skill that an archive is. Raises as `fetch_skill`; nothing of it was stored then."""
    if f"sha256:{sha256_of(data)}" != offered.digest:
        raise _differs()
    called, files = unpack(data)
    folder = read_folder(files, called=called)
    if f"sha256:{folder.digest}" != offered.content or folder.name != offered.name:
        raise _differs()
    return folder


def _differs() -> Conflict:
    return Conflict(
        _("What the source sent is not what its index says."),
        hint=_("Nothing was stored. Try again later, or tell who runs the source."),
    )


def _get(address: str, most: int) -> bytes:
    return bytes(async_to_sync(_got)(address, most))


async def _got(address: str, most: int) -> bytes:
    timeout = httpx2.Timeout(SECONDS)
    try:
        async with guarded_client(_judge, timeout=timeout, most_bytes=most) as client:
            answer = await client.get(address)
    except httpx2.HTTPError as problem:
        raise Declined(
            _("The source cannot be reached: %(why)s") % {"why": str(problem)[:200]},
            hint=_("Check its address."),
        ) from problem
    if answer.status_code != 200:
        raise Declined(
            _("The source answered %(code)d.") % {"code": answer.status_code},
            hint=_("Ask who runs it whether it offers its skills."),
        )
    return answer.content


def _judge(host: str, address: Address, port: int) -> None:
    listed = entries_with_ports(settings.AGENTSITE_SKILLS_PRIVATE_HOSTS)
    if why_refused(host.strip("[]").lower().removesuffix("."), address, port, listed):
        raise Forbidden(
            _("The address of the source leads to where none may be."),
            hint=_("Ask the operator to list it in AGENTSITE_SKILLS_PRIVATE_HOSTS."),
        )
