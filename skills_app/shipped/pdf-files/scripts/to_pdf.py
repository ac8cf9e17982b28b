#!/usr/bin/env python3
"""A PDF (ISO 32000-1, version 1.4) of a Markdown text, without anything to install.

Its fonts are of the fourteen that every reader has; the widths of their letters are those of Adobe's metrics.
"""

from __future__ import annotations

import argparse
import json
import sys
import unicodedata
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "document-parts" / "scripts"))

import blocks  # a skill beside this one
from pictures import CannotBeUsed, PictureFile, read_picture

PAPER = {"a4": (595.28, 841.89), "letter": (612.0, 792.0)}
"""Points; so is every length here."""
EDGE, FOOT = 64.0, 60.0
SIZE, LEAD = 10.5, 1.42
SIZES = {1: 20.0, 2: 15.5, 3: 13.0, 4: 11.5, 5: 10.5, 6: 10.5}
SMALL = 9.0
FONTS = {
    (False, False, False): ("F1", "Helvetica"),
    (True, False, False): ("F2", "Helvetica-Bold"),
    (False, True, False): ("F3", "Helvetica-Oblique"),
    (True, True, False): ("F4", "Helvetica-BoldOblique"),
    (False, False, True): ("F5", "Courier"),
    (True, False, True): ("F6", "Courier-Bold"),
    (False, True, True): ("F7", "Courier-Oblique"),
    (True, True, True): ("F8", "Courier-BoldOblique"),
}
"""By bold, italic and code."""
COLOURS = {1: "DeviceGray", 3: "DeviceRGB", 4: "DeviceCMYK"}
OTHERWISE = {
    "→": "->",
    "←": "<-",
    "⇒": "=>",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "−": "-",
    "‑": "-",
    "\u202f": "\xa0",
}
"""What these letters lack and can be said with those they have."""

# Thousandths of the size, of the characters from the space to the tilde.
_REGULAR = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 "
    "556 556 556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 "
    "556 833 722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 "
    "556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 "
    "500 500 500 334 260 334 584"
)
_BOLD = (
    "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 "
    "556 556 556 556 333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722 "
    "611 833 722 778 667 778 722 667 611 722 667 944 667 667 611 333 278 333 584 556 333 556 "
    "611 556 611 556 333 611 611 278 278 556 278 889 611 611 611 611 389 556 333 611 556 778 "
    "556 556 500 389 280 389 584"
)
_MORE = {
    "–": 556, "—": 1000, "‘": 250, "’": 250, "“": 417, "”": 417, "„": 417, "•": 350, "…": 1000, "©": 737,
    "®": 737, "™": 1000, "°": 400, "·": 278, "ß": 611, "æ": 889, "Æ": 1000, "ø": 611, "Ø": 778, "Œ": 1000,
    "œ": 944, "±": 584, "×": 584, "÷": 584, "¬": 584, "‰": 1000, "½": 834, "¼": 834, "¾": 834, "\xa0": 278,
}  # fmt: skip
WIDTHS = {
    bold: {chr(32 + place): int(width) for place, width in enumerate(told.split())} | _MORE
    for bold, told in ((False, _REGULAR), (True, _BOLD))
}


class CannotBeMade(Exception):
    """The message is for whoever wrote the text."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="Markdown, UTF-8")
    parser.add_argument("document", type=Path)
    parser.add_argument("--title", default="")
    parser.add_argument("--author", default="")
    parser.add_argument("--letter", action="store_true")
    parser.add_argument("--replace", action="store_true", help="? for what cannot be written")
    given = parser.parse_args()
    try:
        text = writable(given.text.read_text(encoding="utf-8-sig"), given.replace)
        pages = Pages(PAPER["letter" if given.letter else "a4"], given.text.parent)
        if given.title:
            pages.heading(blocks.Heading(0, [blocks.Span(writable(given.title, given.replace))]))
        for block in blocks.parse(text):
            pages.add(block)
        given.document.write_bytes(pages.pdf(given.title, given.author))
    except (CannotBeMade, CannotBeUsed, OSError, UnicodeDecodeError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    sys.stdout.write(json.dumps({"made": str(given.document), "pages": len(pages.pages)}) + "\n")
    return 0


def writable(text: str, with_marks: bool) -> str:
    """Composed, and without what the fonts lack. Raises CannotBeMade, naming it, unless marks may stand
    there."""
    text = unicodedata.normalize("NFC", text).expandtabs(4)
    text = "".join(OTHERWISE.get(each, each) for each in text)
    missing = sorted({each for each in text if each not in "\r\n" and not _has(each)})
    if missing and not with_marks:
        shown = " ".join(missing[:20])
        raise CannotBeMade(f"These characters cannot be written in a PDF of this kind: {shown}")
    lacks = set(missing)
    return "".join("?" if each in lacks else each for each in text)


def _has(character: str) -> bool:
    try:
        return character >= " " and bool(character.encode("cp1252"))
    except UnicodeEncodeError:
        return False


def width_of(text: str, span: blocks.Span, size: float) -> float:
    if span.code:
        return len(text) * 0.6 * size
    widths = WIDTHS[span.bold]
    total = 0
    for each in text:
        known = widths.get(each)
        if known is None:  # an accent changes no width
            known = widths.get(unicodedata.normalize("NFD", each)[0], 556)
        total += known
    return total * size / 1000


def string_of(text: str) -> bytes:
    written = text.encode("cp1252", "replace")
    for mark in (b"\\", b"(", b")"):
        written = written.replace(mark, b"\\" + mark)
    return b"(" + written.replace(b"\r", b"\\r").replace(b"\n", b"\\n") + b")"


def said(text: str) -> bytes:
    """A string of the document's own data: titles and bookmarks know every letter."""
    return b"<" + (b"\xfe\xff" + text.encode("utf-16-be")).hex().encode() + b">"


@dataclass
class Page:
    content: list[bytes] = field(default_factory=list)
    links: list[tuple[float, float, float, float, str]] = field(default_factory=list)
    pictures: set[int] = field(default_factory=set)


Line = list[tuple[blocks.Span, str]]


class Pages:
    def __init__(self, paper: tuple[float, float], folder: Path) -> None:
        self.width, self.height = paper
        self.folder = folder
        self.pages: list[Page] = [Page()]
        self.pictures: list[PictureFile] = []
        self.bookmarks: list[tuple[int, str, int, float]] = []
        """(level, words, page, height)."""
        self.y = self.height - EDGE
        self._in_list = False

    @property
    def page(self) -> Page:
        return self.pages[-1]

    @property
    def _is_empty(self) -> bool:
        return not self.page.content

    def turn(self) -> None:
        self.pages.append(Page())
        self.y = self.height - EDGE

    def room(self, high: float) -> None:
        """A page that has it, where there can be one."""
        if self.y - high < FOOT and not self._is_empty:
            self.turn()

    def gap(self, high: float) -> None:
        if not self._is_empty:
            self.y -= high

    # --- blocks -------------------------------------------------------------------------------

    def add(self, block: blocks.Block) -> None:
        if self._in_list and not isinstance(block, blocks.Item):
            self.gap(5)
        self._in_list = isinstance(block, blocks.Item)
        if isinstance(block, blocks.Heading):
            self.heading(block)
        elif isinstance(block, blocks.Paragraph):
            self._paragraph(block)
        elif isinstance(block, blocks.Item):
            self._item(block)
        elif isinstance(block, blocks.Table):
            self._table(block)
        elif isinstance(block, blocks.Code):
            self._code(block)
        elif isinstance(block, blocks.Picture):
            self._picture(block)
        elif not self._is_empty:
            self.turn()

    def heading(self, heading: blocks.Heading) -> None:
        size = SIZES.get(heading.level, 24.0)
        spans = [replace(span, bold=True) for span in heading.spans]
        lines = self.lines(spans, self.width - 2 * EDGE, size)
        # Not alone at the foot of a page.
        self.room(size * LEAD * (len(lines) + 1) + 3 * SIZE * LEAD)
        self.gap(size * 0.7)
        self.bookmarks.append((heading.level, blocks.plain(spans), len(self.pages) - 1, self.y))
        for line in lines:
            self.line(line, EDGE, size, lead=1.25)
        self.y -= 5

    def _paragraph(self, paragraph: blocks.Paragraph) -> None:
        indent = 18.0 if paragraph.quoted else 0.0
        spans = (
            [replace(span, italic=True) for span in paragraph.spans] if indent else paragraph.spans
        )
        for line in self.lines(spans, self.width - 2 * EDGE - 2 * indent, SIZE):
            self.line(line, EDGE + indent, SIZE)
        self.y -= 6

    def _item(self, item: blocks.Item) -> None:
        x = EDGE + 16 + 16 * item.level
        mark = "•" if item.number is None else f"{item.number}."
        for place, line in enumerate(self.lines(item.spans, self.width - EDGE - x, SIZE) or [[]]):
            self.room(SIZE * LEAD)
            if place == 0:
                self._write(
                    mark, blocks.Span(mark), x - 13 if mark == "•" else x - 16, SIZE, self.y - SIZE
                )
            self.line(line, x, SIZE)
        self.y -= 2

    def _code(self, code: blocks.Code) -> None:
        span = blocks.Span("", code=True)
        fits = max(1, int((self.width - 2 * EDGE - 12) / (0.6 * SMALL)))
        lines = [
            line[at : at + fits]
            for line in code.text.split("\n")
            for at in range(0, max(1, len(line)), fits)
        ]
        self.gap(3)
        for line in lines:
            high = SMALL * 1.35
            self.room(high)
            self._fill(EDGE, self.y - high, self.width - 2 * EDGE, high, "0.95 0.95 0.95")
            self._write(line, span, EDGE + 6, SMALL, self.y - SMALL)
            self.y -= high
        self.y -= 8

    def _table(self, table: blocks.Table) -> None:
        widths = self._columns(table)
        head, rows = table.rows[0], table.rows[1:]
        self.gap(3)
        self._row(head, widths, bold=True)
        for row in rows:
            before = len(self.pages)
            self.room(self._height(self._cell_lines(row, widths)))
            if len(self.pages) != before:
                self._row(head, widths, bold=True)
            self._row(row, widths)
        self.y -= 8

    def _columns(self, table: blocks.Table) -> list[float]:
        """As wide as what stands in them, and together as wide as the page at most."""
        whole = self.width - 2 * EDGE
        wanted = [
            max(
                24.0,
                *(
                    sum(width_of(s.text, replace(s, bold=True), SMALL + 0.5) for s in row[column])
                    + 12
                    for row in table.rows
                ),
            )
            for column in range(len(table.rows[0]))
        ]
        if sum(wanted) <= whole:
            return wanted
        fair = whole / len(wanted)
        narrow = sum(each for each in wanted if each <= fair)
        wide = sum(each for each in wanted if each > fair)
        return [each if each <= fair else each * (whole - narrow) / wide for each in wanted]

    def _cell_lines(
        self, row: Sequence[blocks.Spans], widths: Sequence[float], bold: bool = False
    ) -> list[list[Line]]:
        return [
            self.lines([replace(s, bold=s.bold or bold) for s in cell], width - 10, SMALL + 0.5)
            for cell, width in zip(row, widths, strict=True)
        ]

    def _height(self, cells: Sequence[list[Line]]) -> float:
        return max(1, *map(len, cells)) * (SMALL + 0.5) * 1.3 + 7

    def _row(
        self, row: Sequence[blocks.Spans], widths: Sequence[float], bold: bool = False
    ) -> None:
        """One that is higher than a page goes on on the next."""
        cells = self._cell_lines(row, widths, bold)
        fit = int((self.height - EDGE - FOOT - 60) / ((SMALL + 0.5) * 1.3))
        for first in range(0, max(1, *map(len, cells)), fit):
            self._part([lines[first : first + fit] for lines in cells], widths, bold)

    def _part(self, cells: Sequence[list[Line]], widths: Sequence[float], bold: bool) -> None:
        high = self._height(cells)
        self.room(high)
        top, x = self.y, EDGE
        for lines, width in zip(cells, widths, strict=True):
            if bold:
                self._fill(x, top - high, width, high, "0.91 0.93 0.96")
            place = f"{x:.2f} {top - high:.2f} {width:.2f} {high:.2f}"
            self.page.content.append(f"0.65 G 0.5 w {place} re S".encode())
            self.y = top - 3
            for line in lines:
                self.line(line, x + 5, SMALL + 0.5, lead=1.3, stay=True)
            x += width
        self.y = top - high

    def _picture(self, picture: blocks.Picture) -> None:
        file = read_picture(self.folder / picture.path, picture.path)
        if file.colours not in COLOURS:
            raise CannotBeMade(f"The picture {picture.path} cannot be used: it is no usual JPEG.")
        width, height = file.width, file.height
        share = min(
            0.75, (self.width - 2 * EDGE) / width, (self.height - EDGE - FOOT - 20) / height
        )
        self.gap(4)
        self.room(height * share)
        self.pictures.append(file)
        number = len(self.pictures)
        self.page.pictures.add(number)
        self.y -= height * share
        place = f"{width * share:.2f} 0 0 {height * share:.2f} {EDGE:.2f} {self.y:.2f}"
        self.page.content.append(f"q {place} cm /P{number} Do Q".encode())
        self.y -= 8

    # --- lines --------------------------------------------------------------------------------

    def lines(self, spans: Sequence[blocks.Span], width: float, size: float) -> list[Line]:
        """Broken at spaces; a word that is too long is broken where it has to be."""
        lines: list[Line] = [[]]
        used = 0.0
        for span in spans:
            for word in _words(span.text):
                wide = width_of(word, span, size)
                if used + width_of(word.rstrip(), span, size) > width and lines[-1]:
                    lines.append([])
                    used = 0.0
                    word = word.lstrip()
                    wide = width_of(word, span, size)
                while wide > width and len(word) > 1:
                    fits = max(1, _fitting(word, span, size, width - used))
                    if fits == len(word):
                        break
                    lines[-1].append((span, word[:fits]))
                    lines.append([])
                    word, used = word[fits:], 0.0
                    wide = width_of(word, span, size)
                if word:
                    lines[-1].append((span, word))
                    used += wide
        return [line for line in lines if line]

    def line(
        self, line: Line, x: float, size: float, lead: float = LEAD, stay: bool = False
    ) -> None:
        if not stay:
            self.room(size * lead)
        y = self.y - size
        for span, words in _joined(line):
            wide = width_of(words, span, size)
            if span.link.startswith(("http://", "https://", "mailto:")):
                self.page.links.append((x, y - 2, x + wide, y + size, span.link))
                self._write(words, span, x, size, y, colour="0.02 0.35 0.7")
            else:
                self._write(words, span, x, size, y)
            x += wide
        self.y -= size * lead

    def _write(
        self, words: str, span: blocks.Span, x: float, size: float, y: float, colour: str = "0 0 0"
    ) -> None:
        font = FONTS[span.bold, span.italic, span.code][0]
        at = f"BT {colour} rg /{font} {size:.2f} Tf {x:.2f} {y:.2f} Td ".encode()
        self.page.content.append(at + string_of(words) + b" Tj ET")

    def _fill(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self.page.content.append(
            f"{colour} rg {x:.2f} {y:.2f} {width:.2f} {height:.2f} re f".encode()
        )

    # --- the file -----------------------------------------------------------------------------

    def pdf(self, title: str, author: str) -> bytes:
        number_pages(self)
        file = PdfFile()
        catalog, tree = file.reserve(), file.reserve()
        fonts = {
            short: file.add(
                f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>".encode()
            )
            for short, name in FONTS.values()
        }
        told = " ".join(f"/{short} {number} 0 R" for short, number in fonts.items())
        pictures = [file.stream(one.data, _picture_head(one)) for one in self.pictures]
        made = []
        for page in self.pages:
            content = file.stream(b"\n".join(page.content), b"", packed=True)
            links = " ".join(f"{file.add(_link(link))} 0 R" for link in page.links)
            shown = " ".join(f"/P{n} {pictures[n - 1]} 0 R" for n in sorted(page.pictures))
            made.append(
                file.add(
                    f"<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 {self.width} {self.height}] "
                    f"/Resources << /Font << {told} >> /XObject << {shown} >> >> "
                    f"/Annots [{links}] /Contents {content} 0 R >>".encode()
                )
            )
        kids = " ".join(f"{number} 0 R" for number in made)
        file.put(tree, f"<< /Type /Pages /Count {len(made)} /Kids [{kids}] >>".encode())
        outlines = self._outlines(file, made)
        more = f" /Outlines {outlines} 0 R /PageMode /UseOutlines" if outlines else ""
        file.put(catalog, f"<< /Type /Catalog /Pages {tree} 0 R{more} >>".encode())
        about = file.add(b"<< /Title " + said(title) + b" /Author " + said(author) + b" >>")
        return file.bytes(catalog, about)

    def _outlines(self, file: PdfFile, pages: Sequence[int]) -> int:
        """Flat: a reader shows the order, the sizes in the text show the levels."""
        if not self.bookmarks:
            return 0
        root = file.reserve()
        numbers = [file.reserve() for _ in self.bookmarks]
        for place, (level, words, page, y) in enumerate(self.bookmarks):
            around = f" /Prev {numbers[place - 1]} 0 R" if place else ""
            around += f" /Next {numbers[place + 1]} 0 R" if place + 1 < len(numbers) else ""
            indent = "\u2003" * max(0, level - 1)
            file.put(
                numbers[place],
                b"<< /Title "
                + said(indent + words)
                + f" /Parent {root} 0 R{around} /Dest [{pages[page]} 0 R /XYZ 0 {y:.2f} 0] >>".encode(),
            )
        ends = f"/First {numbers[0]} 0 R /Last {numbers[-1]} 0 R /Count {len(numbers)}"
        file.put(root, f"<< /Type /Outlines {ends} >>".encode())
        return root


class PdfFile:
    """Objects, numbered from 1."""

    def __init__(self) -> None:
        self._objects: list[bytes] = []

    def reserve(self) -> int:
        self._objects.append(b"null")
        return len(self._objects)

    def put(self, number: int, content: bytes) -> None:
        self._objects[number - 1] = content

    def add(self, content: bytes) -> int:
        self._objects.append(content)
        return len(self._objects)

    def stream(self, content: bytes, head: bytes, packed: bool = False) -> int:
        if packed:
            content, head = zlib.compress(content), b"/Filter /FlateDecode"
        return self.add(
            b"<< "
            + head
            + f" /Length {len(content)} >>\nstream\n".encode()
            + content
            + b"\nendstream"
        )

    def bytes(self, catalog: int, about: int) -> bytes:
        out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
        places = []
        for number, content in enumerate(self._objects, 1):
            places.append(len(out))
            out += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
        start, count = len(out), len(self._objects) + 1
        out += f"xref\n0 {count}\n0000000000 65535 f \n".encode()
        out += b"".join(f"{place:010} 00000 n \n".encode() for place in places)
        out += f"trailer\n<< /Size {count} /Root {catalog} 0 R /Info {about} 0 R >>\n".encode()
        out += f"startxref\n{start}\n%%EOF\n".encode()
        return bytes(out)


def number_pages(pages: Pages) -> None:
    span = blocks.Span("")
    for number, page in enumerate(pages.pages, 1):
        words = f"{number} / {len(pages.pages)}"
        x = (pages.width - width_of(words, span, SMALL)) / 2
        at = f"BT 0.4 0.4 0.4 rg /F1 {SMALL} Tf {x:.2f} 34 Td ".encode()
        page.content.append(at + string_of(words) + b" Tj ET")


def _link(link: tuple[float, float, float, float, str]) -> bytes:
    *corners, address = link
    place = " ".join(f"{each:.2f}" for each in corners)
    target = string_of(address.encode("ascii", "ignore").decode())
    return (
        f"<< /Type /Annot /Subtype /Link /Rect [{place}] /Border [0 0 0] /A << /S /URI /URI ".encode()
        + target
        + b" >> >>"
    )


def _picture_head(picture: PictureFile) -> bytes:
    # Adobe's programs write the four inks the other way round.
    turned = " /Decode [1 0 1 0 1 0 1 0]" if picture.colours == 4 else ""
    return (
        f"/Type /XObject /Subtype /Image /Width {picture.width} /Height {picture.height}"
        f" /ColorSpace /{COLOURS[picture.colours]} /BitsPerComponent 8{turned} /Filter /DCTDecode"
    ).encode()


def _words(text: str) -> Iterable[str]:
    """Each with the spaces behind it."""
    start = 0
    for place in range(1, len(text)):
        if text[place - 1] == " " and text[place] != " ":
            yield text[start:place]
            start = place
    if text[start:]:
        yield text[start:]


def _fitting(word: str, span: blocks.Span, size: float, width: float) -> int:
    used = 0.0
    for place, each in enumerate(word):
        used += width_of(each, span, size)
        if used > width:
            return place
    return len(word)


def _joined(line: Line) -> Line:
    """Words of one look become one string."""
    found: Line = []
    for span, words in line:
        if found and found[-1][0] is span:
            found[-1] = (span, found[-1][1] + words)
        else:
            found.append((span, words))
    return found


if __name__ == "__main__":
    raise SystemExit(main())
