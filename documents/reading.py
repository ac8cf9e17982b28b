"""The text of what was uploaded or fetched, and how it is cut into passages.

For threads: PDF, Office documents and HTML are taken apart in a process of their own (`tools_app.isolated`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.errors import ToolError
from tools_app.documents import CHARACTERS, kind_of, text_of_document
from tools_app.web.client import Fetched
from tools_app.web.pages import decoded, text_of_page

from .chunking import Chunk, chunks_of

_MARKED = frozenset({"md", "markdown", "mdown", "rst", "txt", "html", "htm", "xhtml", "docx"})
"""Endings of what has headings; of code a line that begins with # is a comment."""
_HTML = frozenset({"html", "htm", "xhtml"})


@dataclass(frozen=True, slots=True)
class Read:
    text: str
    headings: bool
    pages: bool
    cut: bool

    def chunks(self) -> Iterator[Chunk]:
        return chunks_of(self.text, headings=self.headings, pages=self.pages)


def read_document(name: str, data: bytes, media_type: str = "", charset: str = "") -> Read:
    """Raises ToolError for what gives no text; the message says why."""
    kind = kind_of(name, data)
    if kind:
        found = text_of_document(data, kind)
        return Read(found.text, kind == "docx", kind != "docx", found.cut)
    ending = PurePosixPath(name.lower()).suffix.removeprefix(".")
    is_html = ending in _HTML or media_type in {"text/html", "application/xhtml+xml"}
    if is_html:
        fetched = Fetched(name, 200, "", "text/html", charset, data, cut=False)
        page = text_of_page(fetched)
        return Read(page.text[:CHARACTERS], headings=True, pages=False, cut=page.cut)
    if b"\0" in data[:8_192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ToolError("it is neither text nor a document that can be read here")
    text = decoded(data, charset)
    cut = len(text) > CHARACTERS
    if not text.strip():
        raise ToolError("there is no text in it")
    return Read(text[:CHARACTERS], ending in _MARKED or not ending, pages=False, cut=cut)
