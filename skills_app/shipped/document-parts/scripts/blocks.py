"""Markdown as a list of blocks, for scripts that make documents of it.

Raises nothing: what is no mark-up is text. Headings with `#`, lists with spaces before them, tables with
pipes, fences, quotes, one picture a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Span:
    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False
    link: str = ""


Spans = list[Span]


@dataclass
class Heading:
    level: int
    spans: Spans


@dataclass
class Paragraph:
    spans: Spans
    quoted: bool = False


@dataclass
class Item:
    level: int
    number: int | None
    spans: Spans


@dataclass
class Table:
    rows: list[list[Spans]]


@dataclass
class Code:
    text: str


@dataclass
class Picture:
    path: str
    words: str


@dataclass
class Break:
    pass


Block = Heading | Paragraph | Item | Table | Code | Picture | Break

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*$")
_ITEM = re.compile(r"([ \t]*)(?:([-*+])|(\d{1,9})[.)])[ \t]+(.*)$")
_BREAK = re.compile(r"[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*$")
_PICTURE = re.compile(r"[ \t]*!\[([^\]]*)\]\(([^()\s]+)\)[ \t]*$")
_DIVIDER = re.compile(r"[ \t]*\|?[ \t:|-]*-[ \t:|-]*\|?[ \t]*$")
_LINK = re.compile(r"\[([^\[\]]+)\]\(([^()\s]+)\)")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+.!|>~-])")
_HIDDEN = 0xE000
"""Escaped characters stand in a private area until all mark-up was found."""


def parse(text: str) -> list[Block]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return list(_blocks(lines))


def plain(spans: Spans) -> str:
    return "".join(span.text for span in spans)


def _blocks(lines: list[str]) -> Iterator[Block]:
    at = 0
    while at < len(lines):
        line = lines[at]
        fence = line.lstrip()[:3]
        if not line.strip():
            at += 1
        elif fence in {"```", "~~~"}:
            end = at + 1
            while end < len(lines) and lines[end].strip()[:3] != fence:
                end += 1
            yield Code("\n".join(lines[at + 1 : end]))
            at = end + 1
        elif found := _HEADING.match(line):
            yield Heading(len(found[1]), spans_of(found[2]))
            at += 1
        elif _is_table(lines, at):
            end = at + 2
            while end < len(lines) and "|" in lines[end] and lines[end].strip():
                end += 1
            yield _table([lines[at], *lines[at + 2 : end]])
            at = end
        elif _BREAK.match(line):
            yield Break()
            at += 1
        elif found := _PICTURE.match(line):
            yield Picture(found[2], found[1])
            at += 1
        elif found := _ITEM.match(line):
            words, at = _continued(lines, at + 1, found[4])
            level = len(found[1].expandtabs(4)) // 2
            yield Item(min(level, 8), int(found[3]) if found[3] else None, spans_of(words))
        elif line.lstrip().startswith(">"):
            said = []
            while at < len(lines) and lines[at].lstrip().startswith(">"):
                said.append(lines[at].lstrip()[1:].strip())
                at += 1
            for part in "\n".join(said).split("\n\n"):
                if part.strip():
                    yield Paragraph(spans_of(part.replace("\n", " ").strip()), quoted=True)
        else:
            words, at = _continued(lines, at + 1, line.strip())
            yield Paragraph(spans_of(words))


def _continued(lines: list[str], at: int, words: str) -> tuple[str, int]:
    """A paragraph goes on until something else begins."""
    parts = [words.strip()]
    while at < len(lines) and not _begins(lines, at):
        parts.append(lines[at].strip())
        at += 1
    return " ".join(parts), at


def _begins(lines: list[str], at: int) -> bool:
    line = lines[at]
    start = line.lstrip()
    return (
        not start
        or start.startswith(("```", "~~~", ">"))
        or any(each.match(line) for each in (_HEADING, _BREAK, _PICTURE, _ITEM))
        or _is_table(lines, at)
    )


def _is_table(lines: list[str], at: int) -> bool:
    return (
        "|" in lines[at]
        and at + 1 < len(lines)
        and "|" in lines[at + 1]
        and bool(_DIVIDER.match(lines[at + 1]))
    )


def _table(lines: list[str]) -> Table:
    rows = [[spans_of(cell) for cell in _cells(line)] for line in lines]
    width = max(len(row) for row in rows)
    return Table([row + [[] for _ in range(width - len(row))] for row in rows])


def _cells(line: str) -> list[str]:
    line = _hide(line.strip())
    if line.startswith("|"):
        line = line[1:]
    if line.endswith("|"):
        line = line[:-1]
    return [cell.strip() for cell in line.split("|")]


# --- inside a line --------------------------------------------------------------------------------


def spans_of(text: str) -> Spans:
    found: Spans = []
    parts = _hide(text).split("`")
    if len(parts) % 2 == 0:  # the last mark has no twin
        parts[-2:] = ["`".join(parts[-2:])]
    for place, part in enumerate(parts):
        if place % 2:
            found.append(Span(_show(part, raw=True), code=True))
        else:
            found += _linked(part)
    return [span for span in found if span.text]


def _linked(text: str) -> Spans:
    found: Spans = []
    at = 0
    for link in _LINK.finditer(text):
        found += _stressed(text[at : link.start()])
        found += [replace(span, link=_show(link[2])) for span in _stressed(link[1])]
        at = link.end()
    return found + _stressed(text[at:])


def _stressed(text: str) -> Spans:
    """Stars, and underscores outside words. A mark without its twin is text."""
    found: Spans = []
    for marks, inner, rest in _pairs(text):
        found.append(Span(_show(rest)))
        if marks:
            found += [
                replace(
                    span, bold=span.bold or len(marks) > 1, italic=span.italic or len(marks) != 2
                )
                for span in ([Span(_show(inner))] if len(marks) > 1 else _stressed(inner))
            ]
    return found


_PAIR = re.compile(
    r"(?P<a>\*{1,3})(?=\S)(?P<inner>[^*]+)(?<=\S)(?P=a)"
    r"|(?<!\w)(?P<b>_{1,2})(?=\S)(?P<under>[^_]+)(?<=\S)(?P=b)(?!\w)"
)


def _pairs(text: str) -> list[tuple[str, str, str]]:
    """(marks, what they hold, what stands before), the last one without marks."""
    found = []
    at = 0
    for pair in _PAIR.finditer(text):
        before = text[at : pair.start()]
        found.append((pair["a"] or pair["b"], pair["inner"] or pair["under"], before))
        at = pair.end()
    result: list[tuple[str, str, str]] = list(found)
    result.append(("", "", text[at:]))
    return result


def _hide(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(_HIDDEN + ord(found[1])), text)


def _show(text: str, raw: bool = False) -> str:
    """Escapes are undone; in code they stay as they were written."""
    before = "\\" if raw else ""
    return "".join(
        before + chr(ord(each) - _HIDDEN) if _HIDDEN <= ord(each) < _HIDDEN + 128 else each
        for each in text
    )
