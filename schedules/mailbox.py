"""Looks into the operator's mailbox (IMAP) for mails that begin schedules.

A mail is marked as read once it was taken in, and stays there; what could not be read or taken in stays new
for the next look. A process that dies in between, or another that looks at the same time, takes it in again,
and the mail's own id lets it begin nothing twice (`mailintake`).
"""

from __future__ import annotations

import imaplib
import logging
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from django.conf import settings
from django.views.decorators.debug import sensitive_variables

from reading.digits import number_of
from reading.hostnames import split_address
from reading.mails import Unreadable

from .mailintake import take_in

logger = logging.getLogger(__name__)

SECONDS = 30
"""That the server may be silent."""
AT_A_TIME = 50
"""Mails that one look takes in; the next one goes on."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the mailbox is."""

    host: str
    port: int
    encrypted: bool
    user: str
    password: str
    folder: str


@sensitive_variables()
def place_of(address: str) -> Place:
    """Of `imaps://user:password@host:port/folder`. Raises ValueError for what is none."""
    parts = split_address(address)
    if parts.scheme not in {"imap", "imaps"} or not parts.hostname:
        raise ValueError("it begins with imaps:// or imap:// and names a host")
    encrypted = parts.scheme == "imaps"
    return Place(
        host=parts.hostname,
        port=parts.port or (993 if encrypted else 143),
        encrypted=encrypted,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        folder=unquote(parts.path.strip("/")) or "INBOX",
    )


def look() -> int:
    """Take in what is new; how many mails that were. Nothing where no mailbox is set."""
    if not settings.AGENTSITE_IMAP_URL:
        return 0
    taken = 0
    try:
        with _opened(place_of(settings.AGENTSITE_IMAP_URL)) as box:
            # Those that stay new are passed over: they must keep no later ones from being read.
            for number in _new(box):
                taken += _take(box, number)
                if taken >= AT_A_TIME:
                    break
    except (OSError, ValueError, imaplib.IMAP4.error) as problem:
        # Without its text: a server may quote who signed in.
        logger.warning("the mailbox cannot be looked into: %s", type(problem).__name__)
    return taken


@contextmanager
def _opened(place: Place) -> Iterator[imaplib.IMAP4]:
    box: imaplib.IMAP4
    if place.encrypted:
        box = imaplib.IMAP4_SSL(
            place.host, place.port, ssl_context=ssl.create_default_context(), timeout=SECONDS
        )
    else:
        box = imaplib.IMAP4(place.host, place.port, timeout=SECONDS)
    try:
        box.login(place.user, place.password)
        state, _said = box.select(
            '"' + place.folder.replace("\\", "\\\\").replace('"', '\\"') + '"'
        )
        if state != "OK":
            raise imaplib.IMAP4.error("there is no such folder")
        yield box
    finally:
        try:
            box.logout()
        except (OSError, imaplib.IMAP4.error):
            box.shutdown()


def _new(box: imaplib.IMAP4) -> list[str]:
    """The numbers of those that nobody has read, by which a mail is known as long as it is there."""
    _state, said = box.uid("SEARCH", "UNSEEN")
    words = said[0].decode("ascii", "replace").split() if said and said[0] else []
    return [word for word in words if number_of(word) is not None]


def _take(box: imaplib.IMAP4, number: str) -> bool:
    """Whether it was taken in, or begins nothing for good, and is marked. Raises what ends the connection."""
    most = settings.AGENTSITE_INBOUND_MAIL_BYTES
    size = _size(box, number)
    if size is not None and size > most:
        logger.warning("a mail in the mailbox has more than %d bytes and begins nothing", most)
        return _mark(box, number)
    raw = _read(box, number) if size is not None else None
    if raw is None:
        logger.warning("a mail in the mailbox could not be read and stays new")
        return False
    try:
        take_in(raw)
    except Unreadable as problem:
        logger.warning("a mail in the mailbox begins nothing: %s", problem)
    except Exception:
        # Ours: a disk or a database, for one. It is no reason to lose this mail, nor to read no other.
        logger.exception("a mail in the mailbox could not be taken in and stays new")
        return False
    return _mark(box, number)


def _mark(box: imaplib.IMAP4, number: str) -> bool:
    return _asked(box, "STORE", number, "+FLAGS.SILENT", "(\\Seen)") is not None


def _size(box: imaplib.IMAP4, number: str) -> int | None:
    for each in _asked(box, "FETCH", number, "(RFC822.SIZE)") or ():
        told = _told(each) if isinstance(each, bytes) else {}
        if told.get(b"UID") == number.encode() and b"RFC822.SIZE" in told:
            return number_of(told[b"RFC822.SIZE"].decode("ascii", "replace"))
    return None


def _read(box: imaplib.IMAP4, number: str) -> bytes | None:
    # Not marked by reading it: only what was taken in is.
    said = _asked(box, "FETCH", number, "(BODY.PEEK[])") or []
    for each, behind in zip(said, [*said[1:], b""], strict=False):
        if isinstance(each, tuple):
            told = _told(each[0] + b" " + (behind if isinstance(behind, bytes) else b""))
            if told.get(b"UID") == number.encode() and b"BODY[]" in told:
                return bytes(each[1])
    return None


def _asked(box: imaplib.IMAP4, command: str, *words: str) -> list[Any] | None:
    """What the server said, which may be of other mails as well; None where it did not do it. Raises where
    the connection has ended."""
    try:
        state, said = box.uid(command, *words)
    except imaplib.IMAP4.abort:
        raise
    except imaplib.IMAP4.error:
        return None
    return said if state == "OK" else None


def _told(words: bytes) -> dict[bytes, bytes]:
    """What a server tells of a mail, each word with the one behind it."""
    each = words.upper().replace(b"(", b" ").replace(b")", b" ").split()
    return dict(pairwise(each))
