"""What was fetched as text for a model: HTML as Markdown, the words of a PDF, other text as it is.

Plain functions, for threads. HTML and PDF are foreign and may be built to hang or crash a reader, so
they are taken apart in a process of its own (`tools_app.isolated`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bs4.dammit import UnicodeDammit

from harness.errors import ToolError
from tools_app.isolation import IsolatedProcess, IsolationFailed, IsolationTimedOut
from tools_app.web.client import Fetched

HTML_SECONDS = 20.0
HTML_BYTES = 1_500_000
"""Of HTML that are taken apart; what is beyond is left out."""
HTML = frozenset({"text/html", "application/xhtml+xml"})
PDF = "application/pdf"
UNNAMED = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""What servers call a file of which they know nothing."""
PDF_PAGES = 200
PDF_CHARACTERS = 1_000_000
PDF_SECONDS = 20.0
"""Of a PDF that are read; what is beyond is left out."""
_TEXT = re.compile(
    r"text/[\w.+-]+"
    r"|application/([\w.-]+\+)?(json|xml|yaml|toml|javascript|ecmascript|x-sh|x-ndjson|sql|graphql)"
    r"|application/(x-)?(yaml|javascript)|image/svg\+xml"
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
    found = UnicodeDammit(body, [charset] if charset else [], is_html=False)
    text = found.unicode_markup
    if text is None:
        text = body.decode("utf-8", "replace")
    return text.replace("\r\n", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _markdown(fetched: Fetched) -> PageText:
    asked = {
        "body": base64.b64encode(fetched.body[:HTML_BYTES]).decode(),
        "charset": fetched.charset,
        "address": fetched.address,
    }
    found = _taken_apart("webpage", asked, HTML_SECONDS, "page")
    return PageText(
        found["title"], _clean(found["text"]), fetched.cut or len(fetched.body) > HTML_BYTES
    )


def _words_of_pdf(fetched: Fetched) -> PageText:
    if fetched.cut:
        raise ToolError(
            f"{fetched.address} is a PDF of more than {len(fetched.body):,} bytes, which is too large "
            "to be read.",
            hint="Look for a web page or a smaller file with the same content.",
        )
    asked = {
        "body": base64.b64encode(fetched.body).decode(),
        "pages": PDF_PAGES,
        "characters": PDF_CHARACTERS,
        "seconds": PDF_SECONDS / 2,
    }
    found = _taken_apart("pdf", asked, PDF_SECONDS, "PDF")
    if problem := found.get("problem"):
        raise ToolError(f"The PDF at {fetched.address} cannot be read: {problem}.")
    text = _clean(found["text"])
    total, read = int(found["total"]), int(found["read"])
    if not text:
        raise ToolError(
            f"The PDF at {fetched.address} has {total} pages and no text in the first {read}; it may "
            "be scanned.",
            hint="Look for a web page with the same content.",
        )
    cut = read < total or len(text) >= PDF_CHARACTERS
    return PageText(_clean(found["title"]), text, cut)


def _taken_apart(script: str, asked: Mapping[str, Any], seconds: float, what: str) -> Any:
    """What the isolated `script` answers. Raises `ToolError` where it does not come to an end."""
    try:
        with IsolatedProcess(script, seconds=seconds, libraries=True) as process:
            return process.ask(asked)
    except IsolationTimedOut as problem:
        raise ToolError(
            f"The {what} takes too long to read; it may be built to do so."
        ) from problem
    except IsolationFailed as problem:
        raise ToolError(
            f"The {what} cannot be read: it is too large or too deeply nested."
        ) from problem


def _clean(text: str) -> str:
    """Without what no database and no wire takes: NUL, and halves of surrogate pairs."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text.encode(errors="replace").decode()


def _not_text(fetched: Fetched) -> ToolError:
    kind = fetched.media_type or "something that is not text"
    return ToolError(
        f"{fetched.address} is {kind} ({len(fetched.body):,} bytes), which web_fetch does not read.",
        hint="It reads web pages and text. A command such as curl can download other files, if the "
        "environment allows it.",
    )
