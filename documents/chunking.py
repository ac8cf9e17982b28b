"""Cuts the text of a document into passages that can be read by themselves: where headings, pages and
paragraphs end. Plain Python; what the text came from is `documents.reading`'s part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

ENOUGH = 1_200
"""Characters from which on a passage ends with its paragraph."""
MOST = 2_400
"""Characters of a passage; a longer paragraph is cut between words."""
HEADING_LIMIT = 300
_HEADING = re.compile(r"(#{1,6})[ \t]+(\S.*)")
_PAGE = re.compile(r"\[((?:Page|Slide) [0-9]{1,6}|Sheet [^\]\n]{1,60})\]")
"""A document may hold such a line of its own: a number that is wrong says nothing else."""
_FENCE = ("```", "~~~")


@dataclass(frozen=True, slots=True)
class Chunk:
    text: str
    heading: str = ""
    page: str = ""


def chunks_of(text: str, *, headings: bool = False, pages: bool = False) -> Iterator[Chunk]:
    """In order, each with the headings above it and the page on which it begins. `headings`: lines that begin
    with # are such; `pages`: lines as `tools_app.documents` writes them say where one begins."""
    trail: list[tuple[int, str]] = []
    page = ""
    held: list[str] = []
    room = MOST
    fenced = False

    def taken() -> Iterator[Chunk]:
        nonlocal held, room
        whole = "\n".join(held).strip()
        held, room = [], MOST
        if whole:
            above = " › ".join(words for _level, words in trail)[:HEADING_LIMIT]
            yield Chunk(whole, above, page)

    for line in text.splitlines():
        stripped = line.strip()
        if headings and stripped.startswith(_FENCE):
            fenced = not fenced
        found = _PAGE.fullmatch(stripped) if pages else None
        if found is not None:
            yield from taken()
            page = found[1]
            continue
        found = _HEADING.fullmatch(line.rstrip()) if headings and not fenced else None
        if found is not None:
            yield from taken()
            level = len(found[1])
            trail = [each for each in trail if each[0] < level]
            trail.append((level, found[2].rstrip("# ").strip()[:HEADING_LIMIT]))
            continue
        if not stripped and MOST - room >= ENOUGH and not fenced:
            yield from taken()
            continue
        for piece in _pieces(line.rstrip()):
            if len(piece) + 1 > room:
                yield from taken()
            held.append(piece)
            room -= len(piece) + 1
    yield from taken()


def _pieces(line: str) -> Iterator[str]:
    """A line in parts that fit, cut between words where there are any."""
    while len(line) > MOST - 1:
        at = line.rfind(" ", ENOUGH, MOST - 1)
        at = at if at > 0 else MOST - 1
        yield line[:at]
        line = line[at:].lstrip()
    yield line
