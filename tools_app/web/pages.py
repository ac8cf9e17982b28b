"""What was fetched as text for a model: HTML as Markdown, the words of a PDF, other text as it is.

Plain functions, for threads. HTML and PDF are foreign and may be built to hang or crash a reader, so
they are taken apart in a process of its own (`tools_app.isolated`).
"""

from __future__ import annotations

import base64
import codecs
import re
from dataclasses import dataclass

from bs4.dammit import UnicodeDammit

from harness.errors import ToolError
from reading.charsets import as_text, codec_of, strictly
from tools_app.documents import Unreadable, clean, taken_apart, text_of_pdf
from tools_app.web.client import Fetched

HTML_SECONDS = 20.0
HTML_BYTES = 1_500_000
"""Of HTML that are taken apart; what is beyond is left out."""
HTML = frozenset({"text/html", "application/xhtml+xml"})
PDF = "application/pdf"
UNNAMED = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""What servers call a file of which they know nothing."""
_TEXT = re.compile(
    r"text/[\w.+-]+"
    r"|application/([\w.-]+\+)?(json|xml|yaml|toml|javascript|ecmascript|x-sh|x-ndjson|sql|graphql)"
    r"|application/(x-)?(yaml|javascript)|image/svg\+xml"
)
_XML = re.compile(rb"\s{0,9}<\?xml[^>]{1,99}encoding=[\"']([\w.:-]{1,40})[\"']")
_FIRST_LINE = 200
_LOOKED_AT = 16_384
"""Bytes by which it is guessed in which character set others are that name none."""
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16: its mark begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class PageText:
    title: str
    text: str
    cut: bool = False
    """Only the beginning was read."""


def text_of_page(fetched: Fetched) -> PageText:
    """Raises `ToolError` for what is not text, or cannot be read as such."""
    kind = fetched.media_type
    if kind in HTML or (
        not kind and fetched.body.lstrip()[:15].lower().startswith(b"<!doctype html")
    ):
        return _markdown(fetched)
    if kind == PDF or (kind in UNNAMED and fetched.body.startswith(b"%PDF-")):
        return _words_of_pdf(fetched)
    if not kind and b"\0" in fetched.body[:8_192]:
        raise _not_text(fetched)
    if kind and not _TEXT.fullmatch(kind):
        raise _not_text(fetched)
    return PageText("", decoded(fetched.body, fetched.charset), fetched.cut)


def decoded(body: bytes, charset: str) -> str:
    """The text in the named character set, or in the one its bytes speak for."""
    for name in (_marked(body), charset, _declared(body), "utf-8"):
        text = strictly(body, name)
        if text is not None:
            break
    else:
        guessed = UnicodeDammit(body[:_LOOKED_AT], is_html=False).original_encoding or ""
        text = strictly(body, guessed)
        if text is None:
            text = as_text(body, charset or guessed)
    text = text.removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _marked(body: bytes) -> str:
    return next((name for mark, name in _MARKS if body.startswith(mark)), "")


def _declared(body: bytes) -> str:
    """By XML, in its first line."""
    found = _XML.match(body[:_FIRST_LINE])
    return found[1].decode("ascii") if found else ""


def _markdown(fetched: Fetched) -> PageText:
    asked = {
        "body": base64.b64encode(fetched.body[:HTML_BYTES]).decode(),
        "charset": codec_of(fetched.charset),
        "address": fetched.address,
    }
    found = taken_apart("webpage", asked, HTML_SECONDS, "page")
    return PageText(
        found["title"], clean(found["text"]), fetched.cut or len(fetched.body) > HTML_BYTES
    )


def _words_of_pdf(fetched: Fetched) -> PageText:
    if fetched.cut:
        raise ToolError(
            f"{fetched.address} is a PDF of more than {len(fetched.body):,} bytes, which is too large "
            "to be read.",
            hint="Look for a web page or a smaller file with the same content.",
        )
    try:
        found = text_of_pdf(fetched.body)
    except Unreadable as problem:
        raise ToolError(
            f"The PDF at {fetched.address} cannot be read: {problem.message}.",
            hint="Look for a web page with the same content.",
        ) from problem
    return PageText(found.title, found.text, found.cut)


def _not_text(fetched: Fetched) -> ToolError:
    kind = fetched.media_type or "something that is not text"
    return ToolError(
        f"{fetched.address} is {kind} ({len(fetched.body):,} bytes), which web_fetch does not read.",
        hint="It reads web pages and text. A command such as curl can download other files, if the "
        "environment allows it.",
    )
