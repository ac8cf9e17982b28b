"""A mail as strangers wrote it: who sent it, what it says, its files. Whatever its form, in linear time.

Nothing here believes it: a sender is what the mail says of itself. `automatic` tells what programs send by
themselves (RFC 3834), which must not be answered and must begin nothing, or two programs talk for ever.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parseaddr
from html import unescape
from typing import Any

from reading.charsets import as_text, codec_of

HEADER_LIMIT = 2_000
"""Characters of a header that are looked at."""
MOST_PARTS = 100
MOST_FILES = 20
MOST_ADDRESSES = 100
TEXT_LIMIT = 64 * 1024
"""Characters of the text."""
NAME_LIMIT = 100
_BOUNDARY = re.compile(rb"boundary", re.IGNORECASE)
_CONTENT = re.compile(rb"content-(?:type|disposition):", re.IGNORECASE)
_BEHIND_HEADERS = re.compile(rb"\n\r?\n")
_LONE_CR = re.compile(rb"\r(?!\n)")
_HEADER = re.compile(rb"(?:^|(?<=\r))[\x21-\x39\x3b-\x7e]{1,76}:", re.MULTILINE)
MOST_HEADERS = 300_000
"""Lines that look like one, wherever they stand."""
_LOOKS = 10_000_000
"""Lines, as often as there are levels at most: each is compared with the boundaries of all that it is in."""
_PARAMETERS = 10_000
"""Bytes of a header with parameters."""
_ALL_PARAMETERS = 200_000
"""Of all such headers together: each is taken apart for several questions."""
_MOST_PARAMETERS = 200
"""Of one header: for each the library looks again at all that stands before it."""
_NESTED = re.compile(rb"message/", re.IGNORECASE)
_LOWER = str.maketrans({chr(sign): chr(sign + 32) for sign in range(ord("A"), ord("Z") + 1)})
"""What changes no length, as other letters in lower case do."""
_SKIPPED = frozenset({"script", "style", "head", "title", "template"})
_BREAKING = frozenset({"p", "div", "br", "li", "tr", "h1", "h2", "h3", "h4", "blockquote", "pre"})


class Unreadable(ValueError):
    """It is no mail that anybody's program would send."""


@dataclass(frozen=True, slots=True)
class File:
    name: str
    mime_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Mail:
    key: str
    """A digest of its own id, or of all of it where it has none: the same mail has the same."""
    sender: str
    """The address in *From*, in lower case; empty: it names none, or several."""
    recipients: tuple[str, ...]
    """All addresses that it was sent to, as far as it says."""
    subject: str
    date: str
    text: str
    files: tuple[File, ...]
    more_files: int
    """Those beyond the first ones."""
    automatic: str
    """By which sign a program sent it by itself; empty: none."""
    verdicts: tuple[str, ...]
    """What mail servers say of its sender (*Authentication-Results*), the last one's first."""


def read_mail(raw: bytes) -> Mail:
    """How long it may be the caller has asked. Raises Unreadable."""
    # Each level of parts is looked for in each line below it.
    parts = len(_BOUNDARY.findall(raw))
    if parts > MOST_PARTS or len(_NESTED.findall(raw)) > MOST_PARTS:
        raise Unreadable("it has too many parts")
    lone = raw.count(b"\r") - raw.count(b"\r\n")  # in parts it ends a line as well
    if (raw.count(b"\n") + lone) * (1 + parts) > _LOOKS:
        raise Unreadable("it has too many lines for so many parts")
    if len(_HEADER.findall(raw)) > MOST_HEADERS:
        raise Unreadable("it has too many headers")
    _require_whole_lines(raw)
    _require_short_headers(raw)
    try:
        return _read(raw)
    except Unreadable:
        raise
    except (ValueError, *_ODDITIES) as problem:
        raise Unreadable("it cannot be read") from problem


_ODDITIES = (AssertionError, AttributeError, LookupError, RecursionError, TypeError)
"""What Python's classes of mails raise at what their authors did not think of; `ValueError` beside them."""


def _read(raw: bytes) -> Mail:
    message = message_from_bytes(raw, _class=_Message, policy=policy.compat32)
    parts = list(_parts(message))
    attached = [part for part in parts if _is_file(part)]
    files = [_file(part, number) for number, part in enumerate(attached[:MOST_FILES], 1)]
    own = _header(message, "Message-ID").strip()
    if not _addresses(message, "From") and not own:
        raise Unreadable("it has neither a sender nor an id")
    names = ("To", "Cc", "Delivered-To", "X-Original-To", "Envelope-To")
    recipients = [address for name in names for address in _addresses(message, name)]
    return Mail(
        key=hashlib.sha256(own.encode("utf-8", "replace") or raw).hexdigest(),
        sender=_sender(message),
        recipients=tuple(dict.fromkeys(recipients))[:MOST_ADDRESSES],
        subject=" ".join(_header(message, "Subject").split()),
        date=_header(message, "Date").strip()[:100],
        text=_text(parts)[:TEXT_LIMIT],
        files=tuple(files),
        more_files=len(attached) - len(files),
        automatic=_automatic(message),
        verdicts=tuple(
            _plain(str(value)) for value in (message.get_all("Authentication-Results") or [])[:10]
        ),
    )


class _Message(Message):
    """One whose parameters (RFC 2231) name no odd character set: Python decodes them by itself."""

    def get_param(self, *given: Any, **named: Any) -> Any:
        found = super().get_param(*given, **named)
        if isinstance(found, tuple) and not codec_of(found[0] or ""):
            return ("utf-8", *found[1:])
        return found


def _require_whole_lines(raw: bytes) -> None:
    """Some programs end a line at a CR alone and others do not: what is a header here is none there."""
    end = _BEHIND_HEADERS.search(raw)
    if _LONE_CR.search(raw, 0, end.end() if end else len(raw)):
        raise Unreadable("its headers have half an end of a line")


def _require_short_headers(raw: bytes) -> None:
    """Of those with parameters, which are taken apart in the square of their length."""
    together = 0
    for number, found in enumerate(_CONTENT.finditer(raw)):
        end = found.end()
        while (end := raw.find(b"\n", end)) >= 0 and raw[end + 1 : end + 2] in {b" ", b"\t"}:
            end += 1
            if end - found.end() > _PARAMETERS:
                break
        end = end if end >= 0 else len(raw)
        length = end - found.end()
        together += length
        if (
            length > _PARAMETERS
            or together > _ALL_PARAMETERS
            or number >= 10 * MOST_PARTS
            or raw.count(b";", found.end(), end) > _MOST_PARAMETERS
        ):
            raise Unreadable("a header is too long")


def confirms(verdicts: tuple[str, ...], server: str, sender: str) -> bool:
    """Whether this mail server says that the sender is who the mail says (DMARC), and, where it says so, that
    it has read the same domain there. Others' words are nobody's: whoever sends a mail may write such headers
    himself, but the server that takes it in puts its own first."""
    domain = sender.rpartition("@")[2].lower()
    for verdict in verdicts:
        name, _sign, results = _outside_quotes(verdict).partition(";")
        if name.strip().split(" ")[0].lower() == server.lower():
            said = [result.lower().split() for result in results.split(";")]
            found = [words for words in said if words and words[0].startswith("dmarc=")]
            read = {
                word.partition("=")[2].rpartition("@")[2]
                for words in found
                for word in words
                if word.startswith("header.from=")
            }
            return {words[0] for words in found} == {"dmarc=pass"} and read <= {domain}
    return False


def _outside_quotes(text: str) -> str:
    """Without quoted strings and comments: in those stands what the mail itself brought along, an address
    such as "x; dmarc=pass"@example.org."""
    told: list[str] = []
    quoted, depth, escaped = False, 0, False
    for sign in text:
        if escaped:
            escaped = False
        elif sign == "\\" and (quoted or depth):
            escaped = True
        elif sign == '"' and not depth:
            quoted = not quoted
        elif sign == "(" and not quoted:
            depth += 1
        elif sign == ")" and depth and not quoted:
            depth -= 1
        elif not quoted and not depth:
            told.append(sign)
    return "".join(told)


def _automatic(message: Message) -> str:
    submitted = _header(message, "Auto-Submitted").strip().lower()
    if submitted and submitted.split(";")[0].strip() != "no":
        return "Auto-Submitted"
    if _header(message, "Precedence").strip().lower() in {"bulk", "junk", "list", "auto_reply"}:
        return "Precedence"
    for name in ("X-Autoreply", "X-Autorespond", "X-Loop", "List-Id", "List-Unsubscribe"):
        if message.get(name) is not None:
            return name
    if _header(message, "Return-Path").strip() == "<>":
        return "Return-Path"
    if message.get_content_type() in {"multipart/report", "message/delivery-status"}:
        return "Content-Type"
    return ""


# --- headers --------------------------------------------------------------------------------------


def _plain(value: str) -> str:
    text = value[:HEADER_LIMIT].replace("\r", " ").replace("\n", " ")
    return "".join(sign for sign in text if sign.isprintable() or sign == " ")


def _header(message: Message, name: str) -> str:
    value = message.get(name)
    return _decoded(str(value)) if value is not None else ""


def _decoded(value: str) -> str:
    value = value[:HEADER_LIMIT]
    try:
        pieces = decode_header(value)
    except (HeaderParseError, ValueError):
        return _plain(value)
    told = [
        piece if isinstance(piece, str) else as_text(piece, charset or "")
        for piece, charset in pieces
    ]
    return _plain("".join(told))


def _addresses(message: Message, name: str) -> list[str]:
    values = [_plain(str(value)) for value in (message.get_all(name) or [])[:10]]
    try:
        pairs = getaddresses(values)[:MOST_ADDRESSES]
    except (ValueError, IndexError, RecursionError):
        return []
    return [address.lower() for _name, address in pairs if _is_address(address)]


def _sender(message: Message) -> str:
    """The one address in the one *From*. Where another program may read another one, or more of it, it is
    nobody's: what a mail server has confirmed would be another sender than the one that is looked for."""
    given = [str(value) for value in message.get_all("From") or []]
    if len(given) != 1 or len(given[0]) > HEADER_LIMIT:
        return ""
    try:
        pairs = getaddresses([_plain(given[0])])
    except (ValueError, IndexError, RecursionError):
        return ""
    told = [address for _name, address in pairs]
    return told[0].lower() if len(told) == 1 and _is_address(told[0]) else ""


def _is_address(text: str) -> bool:
    local, at, domain = text.rpartition("@")
    is_whole = bool(local and at and domain) and len(text) <= 254
    return is_whole and text.isprintable() and not set(text) & set(' <>,;"')


def address_in(text: str) -> str:
    """The address that a name and address have, in lower case; empty: none."""
    address = parseaddr(text[:HEADER_LIMIT])[1]
    return address.lower() if _is_address(address) else ""


# --- parts ----------------------------------------------------------------------------------------


def _parts(message: Message) -> Iterator[Message]:
    """The leaves; a mail within it is one file."""
    payload = message.get_payload()
    if message.get_content_maintype() == "multipart" and isinstance(payload, list):
        for part in payload:
            if isinstance(part, Message):
                yield from _parts(part)
    else:
        yield message


def _is_file(part: Message) -> bool:
    if part.get_content_disposition() == "attachment":
        return True
    if part.get_content_type() in {"text/plain", "text/html"}:
        return part.get_filename() is not None
    return True


def _file(part: Message, number: int) -> File:
    if part.get_content_maintype() == "message":
        payload = part.get_payload()
        inner = payload[0] if isinstance(payload, list) and payload else None
        held = inner.as_bytes() if isinstance(inner, Message) else b""
        return File(_name(part, number, "mail.eml"), "message/rfc822", held)
    data = part.get_payload(decode=True)
    held = data if isinstance(data, bytes) else b""
    return File(_name(part, number, f"file-{number}"), part.get_content_type()[:127], held)


def _name(part: Message, number: int, usual: str) -> str:
    """A name without a folder, whatever the mail says; the number keeps two of one name apart."""
    try:
        given = _decoded(part.get_filename() or "")
    except (ValueError, LookupError, TypeError):
        given = ""
    name = re.split(r"[/\\]", given)[-1]
    name = "".join(sign if sign.isalnum() or sign in " -_." else "-" for sign in name).strip(" .")
    return f"{number}-{name[-NAME_LIMIT:].strip(' .') or usual}"


def _text(parts: list[Message]) -> str:
    """All that is plain text; where nothing is, what a browser would show of the HTML."""
    shown = [part for part in parts if not _is_file(part)]
    for kind in ("text/plain", "text/html"):
        found = [_body(part) for part in shown if part.get_content_type() == kind]
        if kind == "text/html":
            found = [_text_of_html(text) for text in found]
        text = "\n\n".join(each.strip() for each in found if each.strip())
        if text:
            return "".join(
                sign for sign in text.replace("\r\n", "\n") if sign.isprintable() or sign in "\n\t"
            )
    return ""


def _body(part: Message) -> str:
    data = part.get_payload(decode=True)
    charset = part.get_param("charset", "utf-8")
    held = data[: 4 * TEXT_LIMIT] if isinstance(data, bytes) else b""
    return as_text(held, charset if isinstance(charset, str) else "")


def _text_of_html(text: str) -> str:
    """What a browser would show of it, about. Each step goes on behind the last, whatever stands there:
    parsers of HTML look through the rest again for each tag that has no end."""
    low = text.translate(_LOWER)
    told, at = [], 0
    while (begin := text.find("<", at)) >= 0:
        told.append(text[at:begin])
        if low.startswith("<!--", begin):
            end = low.find("-->", begin)
            at = end + 3 if end >= 0 else len(text)
            continue
        name = _tag(low[begin + 1 : begin + 20])
        if not name:
            told.append("<")
            at = begin + 1
            continue
        end = text.find(">", begin)
        at = end + 1 if end >= 0 else len(text)
        if name in _BREAKING:
            told.append("\n")
        if name in _SKIPPED:
            end = low.find(f"</{name}", at)
            at = end if end >= 0 else len(text)
    told.append(text[at:])
    lines = (" ".join(line.split()) for line in unescape("".join(told)).splitlines())
    return "\n".join(line for line in lines if line)


def _tag(text: str) -> str:
    """The name of the tag that begins so, `!` for a declaration; empty: it is none."""
    if text[:1] in {"!", "?"}:
        return "!"
    closes = text.startswith("/")
    name = ""
    for sign in text[closes:]:
        if not (sign.isascii() and sign.isalnum()):
            break
        name += sign
    return ("/" * closes + name) if name[:1].isalpha() else ""
