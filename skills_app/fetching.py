"""Gets skills from a server or site elsewhere: its index, then one archive, whole and as the index says, or
nothing.

Connections are judged like all that somebody's word leads to. Repositories are `repositories`' part, which
source is asked how `looking`'s, what becomes of a skill the actions'.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import httpx2
from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Conflict, Declined, Forbidden, Invalid
from net.addresses import Address, parse_address
from net.guarded import guarded_client
from net.hostlists import entries_with_ports, why_refused
from reading.hostnames import is_web_address, joined_address, split_address

from .folder import SkillFolder, read_folder, sha256_of
from .models import SkillSource, SourceOffer
from .names import SKILL
from .openindex import OpenOffer, read_open_index
from .packing import unpack
from .signedindex import MOST_BYTES, Index, Offered, read_index

INDEX = "/.well-known/agent-skills/index.json"
SECONDS = 30.0
LONGEST_ADDRESS = 2_000


def address_of(text: str) -> str:
    """Where the index of this server or address is. Raises Invalid."""
    address = server_of(text)
    path = split_address(address).path
    return address if path.endswith(".json") else joined_address(address, INDEX)


def server_of(text: str) -> str:
    """An address of the web. Raises Invalid."""
    if len(text) > LONGEST_ADDRESS:
        raise Invalid(_("The address is too long."), field="source", hint=_("Shorten it."))
    text = text.strip()
    if not is_web_address(text) or not text.isprintable():
        raise Invalid(
            _("This is no address of a server."),
            field="source",
            hint=_("Write it like https://agents.example.org."),
        )
    return text


def require_private_way(address: str) -> None:
    """Raises Invalid for an address of the web at which everybody on the way could change what is sent,
    unless it is one of the operator's own."""
    parts = split_address(address)
    host, port = parts.hostname or "", parts.port or 80
    listed = entries_with_ports(settings.AGENTSITE_SKILLS_PRIVATE_HOSTS)
    if parts.scheme != "https" and not any(
        entry.covers(host, parse_address(host), port) for entry in listed
    ):
        raise Invalid(
            _("What comes from there is not signed, so its address has to begin with https."),
            field="source",
            hint=_("Write it with https://."),
        )


def fetch_index(source: SkillSource) -> Index:
    """What a server offers now. Raises as `read_index`, and Declined where it cannot be had."""
    data = get(source.address, MOST_BYTES)
    return read_index(data, key=source.key, now=time.time(), seen=source.seen)


def fetch_open_index(source: SkillSource) -> list[OpenOffer]:
    """Raises as `read_open_index`, and Declined where it cannot be had."""
    require_private_way(source.address)
    return read_open_index(get(source.address, MOST_BYTES))


def fetch_open_skill(source: SkillSource, offer: SourceOffer) -> SkillFolder:
    """Its files, if every byte is what the index said. Raises as `fetch_skill`."""
    require_private_way(source.address)
    data = get(_below(source, offer.place), settings.AGENTSITE_SKILL_BYTES * 2)
    if sha256_of(data) != offer.digest:
        raise differs()
    if offer.place.endswith(f"/{SKILL}") or offer.place == SKILL or _is_text(data):
        called, files = "", {SKILL: data}
    else:
        called, files = unpack(data)
    folder = read_folder(files, called=called)
    if folder.name != offer.name:
        raise differs()
    return folder


def _is_text(data: bytes) -> bool:
    """A SKILL.md begins with three hyphens, an archive never."""
    return data.lstrip(b"\xef\xbb\xbf").startswith(b"---")


def fetch_skill(source: SkillSource, offered: Offered) -> SkillFolder:
    """Its files, if every byte is what the index says. Raises Conflict, and Invalid for what is no skill."""
    most = min(offered.size, settings.AGENTSITE_SKILL_BYTES * 2)
    return verified(offered, get(_below(source, offered.url), most))


def verified(offered: Offered, data: bytes) -> SkillFolder:
    """The skill that an archive is. Raises as `fetch_skill`; nothing of it was stored then."""
    if f"sha256:{sha256_of(data)}" != offered.digest:
        raise differs()
    called, files = unpack(data)
    folder = read_folder(files, called=called)
    if f"sha256:{folder.digest}" != offered.content or folder.name != offered.name:
        raise differs()
    return folder


def differs() -> Conflict:
    return Conflict(
        _("What the source sent is not what its index says."),
        hint=_("Nothing was stored. Try again later, or tell who runs the source."),
    )


def _below(source: SkillSource, place: str) -> str:
    try:
        address = joined_address(source.address, place)
        known = split_address(address)[:2] == split_address(source.address)[:2]
    except ValueError:
        known = False
    if not known:
        raise Invalid(_("The index leads to another server."), field="source")
    return address


def get(address: str, most: int) -> bytes:
    """Raises Declined where it cannot be had, and what the judge of addresses raises."""
    return bytes(async_to_sync(_asked)("GET", address, most, b"", {}))


def post(address: str, most: int, body: bytes, headers: Mapping[str, str]) -> bytes:
    """As `get`."""
    return bytes(async_to_sync(_asked)("POST", address, most, body, headers))


async def _asked(
    method: str, address: str, most: int, body: bytes, headers: Mapping[str, str]
) -> bytes:
    timeout = httpx2.Timeout(SECONDS)
    try:
        async with guarded_client(
            _judge, timeout=timeout, seconds=SECONDS, most_bytes=most
        ) as client:
            answer = await client.request(method, address, content=body, headers=dict(headers))
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
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
    if why_refused(host, address, port, listed):
        raise Forbidden(
            _("The address of the source leads to a private or local address, which is refused."),
            hint=_("Ask the operator to list it in AGENTSITE_SKILLS_PRIVATE_HOSTS."),
        )
