"""Gets a document from an address that a person gave. Connections are judged like all that somebody's word
leads to: public addresses alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from email.message import Message
from pathlib import PurePosixPath
from urllib.parse import unquote

import httpx2
from asgiref.sync import async_to_sync
from django.conf import settings
from django.utils.translation import gettext as _

from harness.errors import Declined, Forbidden, Invalid
from net.addresses import Address
from net.guarded import guarded_client
from net.hostlists import why_refused
from reading.hostnames import is_web_address, split_address

from .models import ADDRESS_LIMIT

SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Got:
    body: bytes
    media_type: str
    charset: str
    name: str
    """With the ending that says what it is; empty: the address has none."""


def check_address(text: str) -> str:
    """The address as it is kept. Raises Invalid."""
    text = text.strip()
    if (
        not is_web_address(text)
        or len(text) > ADDRESS_LIMIT
        or not text.isprintable()
        or " " in text
    ):
        raise Invalid(
            _("This is no address of a document."),
            field="address",
            hint=_("Write it like https://example.org/handbook.pdf."),
        )
    return text


def fetch_document(address: str) -> Got:
    """Raises Declined, and Forbidden for addresses that are not public."""
    return async_to_sync(_got)(address)


async def _got(address: str) -> Got:
    timeout = httpx2.Timeout(SECONDS)
    most = settings.AGENTSITE_DOCUMENT_BYTES
    try:
        async with guarded_client(
            _judge, timeout=timeout, seconds=SECONDS, most_bytes=most
        ) as client:
            answer = await client.get(address)
    except (httpx2.HTTPError, httpx2.InvalidURL) as problem:
        raise Declined(
            _("It cannot be fetched: %(why)s") % {"why": str(problem)[:200]},
            hint=_("Check its address."),
        ) from problem
    if answer.status_code != 200:
        raise Declined(
            _("Its server answered %(code)d.") % {"code": answer.status_code},
            hint=_("Check its address."),
        )
    said = Message()
    said["content-type"] = answer.headers.get("content-type", "")
    name = PurePosixPath(unquote(split_address(address).path)).name
    return Got(
        answer.content,
        said.get_content_type() if said["content-type"] else "",
        str(said.get_param("charset") or ""),
        name if "." in name else "",
    )


def _judge(host: str, address: Address, port: int) -> None:
    if why_refused(host, address, port, ()):
        raise Forbidden(
            _("This address is not on the public internet."),
            hint=_("Upload the document instead."),
        )
