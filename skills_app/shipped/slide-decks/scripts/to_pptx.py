#!/usr/bin/env python3
"""A presentation (Office Open XML, ECMA-376) of a Markdown text, without anything to install."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "document-parts" / "scripts"))

import blocks  # a skill beside this one
from office import OFFICE, relations, save, text_of
from pictures import CannotBeUsed, read_picture

EMU = 12_700
"""Units of drawings in a point."""
WIDTH, HEIGHT = 960, 540
"""Points: 16 to 9."""
EDGE, TOP, BOTTOM = 60, 130, 40
LINE = {"text": 30, "code": 20, "row": 32}
"""Points that a line takes."""
A_LINE = 66
"""Characters of text that fit into one."""
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
MAIN = "http://schemas.openxmlformats.org/presentationml/2006/main"
TYPE = "application/vnd.openxmlformats-officedocument"
SPACES = f'xmlns:a="{DRAWING}" xmlns:r="{OFFICE}" xmlns:p="{MAIN}"'


class CannotBeMade(Exception):
    """The message is for whoever wrote the text."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="Markdown, UTF-8")
    parser.add_argument("deck", type=Path)
    given = parser.parse_args()
    try:
        slides = slides_of(blocks.parse(given.text.read_text(encoding="utf-8-sig")))
        if not slides:
            raise CannotBeMade("The text is empty.")
        deck = Deck(given.text.parent)
        for slide in slides:
            deck.add(slide)
        deck.save(given.deck)
    except (CannotBeMade, CannotBeUsed, OSError, UnicodeDecodeError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    made = {"made": str(given.deck), "slides": len(slides), "full": deck.full}
    sys.stdout.write(json.dumps(made) + "\n")
    return 0


LARGE = (blocks.Picture, blocks.Table, blocks.Code)
"""What a title slide has no room for: it stands on the next one."""


@dataclass
class Slide:
    title: blocks.Spans = field(default_factory=list)
    opens: bool = False
    """A title slide."""
    body: list[blocks.Block] = field(default_factory=list)
    notes: list[blocks.Spans] = field(default_factory=list)


def slides_of(found: Iterable[blocks.Block]) -> list[Slide]:
    slides: list[Slide] = []
    for block in found:
        if isinstance(block, blocks.Heading) and block.level <= 2:
            slides.append(Slide(block.spans, opens=block.level == 1))
        elif isinstance(block, blocks.Break):
            slides.append(Slide())
        else:
            if not slides or (slides[-1].opens and isinstance(block, LARGE)):
                slides.append(Slide())
            if isinstance(block, blocks.Paragraph) and block.quoted:
                slides[-1].notes.append(block.spans)
            else:
                slides[-1].body.append(block)
    return [each for each in slides if each.title or each.body or each.notes]


def box(x: float, y: float, width: float, height: float, tag: str = "a") -> str:
    at = f'<a:off x="{round(x * EMU)}" y="{round(y * EMU)}"/>'
    size = f'<a:ext cx="{round(width * EMU)}" cy="{round(height * EMU)}"/>'
    return f"<{tag}:xfrm>{at}{size}</{tag}:xfrm>"


class Deck:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts: dict[str, str | bytes] = {}
        self.full: list[int] = []
        self.count = 0
        self.noted: list[int] = []
        self._links: list[tuple[str, str, bool]] = []
        """Of the slide that is being made: (kind, target, whether it leads outside), by number from 1."""
        self._shapes = 1

    def add(self, slide: Slide) -> None:
        self.count += 1
        layout = 1 if slide.opens else 2
        self._links = [("slideLayout", f"../slideLayouts/slideLayout{layout}.xml", False)]
        self._shapes = 1
        kind = "ctrTitle" if slide.opens else "title"
        made = [self._placed(kind, [self._p(slide.title)])] if slide.title else []
        made += self._opening(slide) if slide.opens else self._content(slide)
        if slide.notes:
            self._note(slide)
        name = f"ppt/slides/slide{self.count}.xml"
        self.parts[name] = (
            f"<p:sld {SPACES}><p:cSld>{tree(''.join(made))}</p:cSld>"
            "<p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sld>"
        )
        self.parts[f"ppt/slides/_rels/slide{self.count}.xml.rels"] = relations(self._links)

    def _opening(self, slide: Slide) -> list[str]:
        lines = [self._p(self._spans(each)) for each in slide.body if self._spans(each)]
        return [self._placed("subTitle", lines, index=1)] if lines else []

    def _spans(self, block: blocks.Block) -> blocks.Spans:
        return list(getattr(block, "spans", []))

    # --- what stands on a slide, from the top ---------------------------------------------------

    def _content(self, slide: Slide) -> list[str]:
        made = []
        at: float = TOP if slide.title else EDGE
        rest = [each for each in slide.body if not isinstance(each, blocks.Picture)]
        pictures = [each for each in slide.body if isinstance(each, blocks.Picture)]
        for together in _runs(rest):
            shape, high = self._shape(together, at)
            made.append(shape)
            at += high + 10
        room = HEIGHT - BOTTOM - at
        if room < 0 or (pictures and room < 100):
            self.full.append(self.count)
        wide = (WIDTH - 2 * EDGE) / max(1, len(pictures))
        for place, picture in enumerate(pictures):
            made.append(self._picture(picture, EDGE + place * wide, at, wide, max(100, room)))
        return made

    def _shape(self, together: Sequence[blocks.Block], at: float) -> tuple[str, float]:
        first = together[0]
        if isinstance(first, blocks.Table):
            return self._table(first, at)
        if isinstance(first, blocks.Code):
            lines = first.text.split("\n")
            tall = float(LINE["code"] * len(lines) + 16)
            said = [self._p([blocks.Span(line, code=True)], size=14) for line in lines]
            return self._textbox(said, at, tall, fill="F2F2F2"), tall
        high = 16.0
        for block in together:
            length = len(blocks.plain(self._spans(block)))
            high += LINE["text"] * max(1, -(-length // A_LINE))
        said = [self._said(block) for block in together]
        return self._textbox(said, at, high), high

    def _said(self, block: blocks.Block) -> str:
        spans = self._spans(block)
        if isinstance(block, blocks.Item):
            level = min(block.level, 4)
            mark = '<a:buAutoNum type="arabicPeriod"/>' if block.number else '<a:buChar char="•"/>'
            start = 22 + 22 * level
            how = f'<a:pPr lvl="{level}" marL="{start * EMU}" indent="{-22 * EMU}">{mark}</a:pPr>'
            return self._p(spans, how=how, size=20 - 2 * min(level, 2))
        if isinstance(block, blocks.Heading):
            spans = [replace(span, bold=True) for span in spans]
        return self._p(spans, how="<a:pPr><a:buNone/></a:pPr>", size=20)

    def _p(self, spans: Sequence[blocks.Span], how: str = "", size: int = 0) -> str:
        return f"<a:p>{how}{''.join(self._run(span, size) for span in spans)}</a:p>"

    def _run(self, span: blocks.Span, size: int) -> str:
        looks = f' sz="{size * 100}"' * bool(size) + ' b="1"' * span.bold + ' i="1"' * span.italic
        inner = '<a:latin typeface="Consolas"/>' if span.code else ""
        if span.link.startswith(("http://", "https://", "mailto:")):
            inner += f'<a:hlinkClick r:id="{self._link("hyperlink", span.link, True)}"/>'
        return (
            f'<a:r><a:rPr lang="en-GB"{looks}>{inner}</a:rPr><a:t>{text_of(span.text)}</a:t></a:r>'
        )

    def _link(self, kind: str, target: str, outside: bool = False) -> str:
        wanted = (kind, target, outside)
        if wanted not in self._links:
            self._links.append(wanted)
        return f"rId{self._links.index(wanted) + 1}"

    def _named(self, name: str, words: str = "") -> str:
        self._shapes += 1
        told = f" descr={quoteattr(words)}" if words else ""
        return f'<p:cNvPr id="{self._shapes}" name="{name} {self._shapes}"{told}/>'

    def _placed(self, kind: str, said: Sequence[str], index: int = 0) -> str:
        where = f'<p:ph type="{kind}"{f" idx={quoteattr(str(index))}" if index else ""}/>'
        return (
            f"<p:sp><p:nvSpPr>{self._named('Text')}<p:cNvSpPr/><p:nvPr>{where}</p:nvPr></p:nvSpPr>"
            f"<p:spPr/><p:txBody><a:bodyPr/><a:lstStyle/>{''.join(said)}</p:txBody></p:sp>"
        )

    def _textbox(self, said: Sequence[str], at: float, high: float, fill: str = "") -> str:
        colour = f'<a:solidFill><a:srgbClr val="{fill}"/></a:solidFill>' if fill else "<a:noFill/>"
        return (
            f'<p:sp><p:nvSpPr>{self._named("Text")}<p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr>'
            f'{box(EDGE, at, WIDTH - 2 * EDGE, high)}<a:prstGeom prst="rect"><a:avLst/></a:prstGeom>'
            f'{colour}</p:spPr><p:txBody><a:bodyPr wrap="square"><a:normAutofit/></a:bodyPr>'
            f"<a:lstStyle/>{''.join(said)}</p:txBody></p:sp>"
        )

    def _table(self, table: blocks.Table, at: float) -> tuple[str, float]:
        columns = len(table.rows[0])
        wide = round((WIDTH - 2 * EDGE) * EMU / columns)
        high = LINE["row"] * len(table.rows)
        rows = []
        for place, row in enumerate(table.rows):
            cells = "".join(
                "<a:tc><a:txBody><a:bodyPr/><a:lstStyle/>"
                f"{self._p([replace(s, bold=s.bold or place == 0) for s in cell], size=16)}"
                f"</a:txBody><a:tcPr/></a:tc>"
                for cell in row
            )
            rows.append(f'<a:tr h="{LINE["row"] * EMU}">{cells}</a:tr>')
        grid = f'<a:gridCol w="{wide}"/>' * columns
        # The style every PowerPoint has: "Medium Style 2 - Accent 1".
        style = "<a:tableStyleId>{5C22544A-7EE6-4342-B048-85BDC9FD1C3A}</a:tableStyleId>"
        return (
            f"<p:graphicFrame><p:nvGraphicFramePr>{self._named('Table')}<p:cNvGraphicFramePr/><p:nvPr/>"
            f"</p:nvGraphicFramePr>{box(EDGE, at, WIDTH - 2 * EDGE, high, 'p')}<a:graphic>"
            '<a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/table"><a:tbl>'
            f'<a:tblPr firstRow="1" bandRow="1">{style}</a:tblPr><a:tblGrid>{grid}</a:tblGrid>'
            f"{''.join(rows)}</a:tbl></a:graphicData></a:graphic></p:graphicFrame>"
        ), high

    def _picture(
        self, picture: blocks.Picture, x: float, y: float, wide: float, high: float
    ) -> str:
        file = read_picture(self.folder / picture.path, picture.path)
        number = sum(name.startswith("ppt/media/") for name in self.parts) + 1
        self.parts[f"ppt/media/picture{number}.{file.kind}"] = file.data
        share = min((wide - 10) / file.width, high / file.height)
        across, down = file.width * share, file.height * share
        link = self._link("image", f"../media/picture{number}.{file.kind}")
        place = box(x + (wide - across) / 2, y, across, down)
        return (
            f"<p:pic><p:nvPicPr>{self._named('Picture', picture.words)}<p:cNvPicPr/><p:nvPr/></p:nvPicPr>"
            f'<p:blipFill><a:blip r:embed="{link}"/><a:stretch><a:fillRect/></a:stretch></p:blipFill>'
            f'<p:spPr>{place}<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr></p:pic>'
        )

    def _note(self, slide: Slide) -> None:
        self.noted.append(self.count)
        self._link("notesSlide", f"../notesSlides/notesSlide{self.count}.xml")
        said = "".join(
            f'<a:p><a:r><a:rPr lang="en-GB"/><a:t>{text_of(blocks.plain(spans))}</a:t></a:r></a:p>'
            for spans in slide.notes
        )
        self.parts[f"ppt/notesSlides/notesSlide{self.count}.xml"] = (
            f"<p:notes {SPACES}><p:cSld>{tree(NOTE.replace('<a:p/>', said))}</p:cSld>"
            "<p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:notes>"
        )
        self.parts[f"ppt/notesSlides/_rels/notesSlide{self.count}.xml.rels"] = relations(
            [
                ("notesMaster", "../notesMasters/notesMaster1.xml", False),
                ("slide", f"../slides/slide{self.count}.xml", False),
            ]
        )

    # --- the package --------------------------------------------------------------------------

    def save(self, place: Path) -> None:
        numbers = range(1, self.count + 1)
        links = [("slideMaster", "slideMasters/slideMaster1.xml", False)]
        links += [("theme", "theme/theme1.xml", False)]
        links += [("notesMaster", "notesMasters/notesMaster1.xml", False)]
        links += [("slide", f"slides/slide{n}.xml", False) for n in numbers]
        listed = "".join(f'<p:sldId id="{255 + n}" r:id="rId{3 + n}"/>' for n in numbers)
        parts: dict[str, str | bytes] = {
            "_rels/.rels": relations([("officeDocument", "ppt/presentation.xml", False)]),
            "ppt/presentation.xml": (
                f'<p:presentation {SPACES}><p:sldMasterIdLst><p:sldMasterId id="2147483648" r:id="rId1"/>'
                '</p:sldMasterIdLst><p:notesMasterIdLst><p:notesMasterId r:id="rId3"/></p:notesMasterIdLst>'
                f"<p:sldIdLst>{listed}</p:sldIdLst>"
                f'<p:sldSz cx="{WIDTH * EMU}" cy="{HEIGHT * EMU}"/>'
                f'<p:notesSz cx="{HEIGHT * EMU}" cy="{WIDTH * EMU}"/></p:presentation>'
            ),
            "ppt/_rels/presentation.xml.rels": relations(links),
            "ppt/theme/theme1.xml": THEME,
            "ppt/theme/theme2.xml": THEME,
            "ppt/slideMasters/slideMaster1.xml": MASTER,
            "ppt/slideMasters/_rels/slideMaster1.xml.rels": relations(
                [
                    ("slideLayout", "../slideLayouts/slideLayout1.xml", False),
                    ("slideLayout", "../slideLayouts/slideLayout2.xml", False),
                    ("theme", "../theme/theme1.xml", False),
                ]
            ),
            "ppt/notesMasters/notesMaster1.xml": NOTES_MASTER,
            "ppt/notesMasters/_rels/notesMaster1.xml.rels": relations(
                [("theme", "../theme/theme2.xml", False)]
            ),
        }
        for number, layout in enumerate(LAYOUTS, 1):
            parts[f"ppt/slideLayouts/slideLayout{number}.xml"] = layout
            parts[f"ppt/slideLayouts/_rels/slideLayout{number}.xml.rels"] = relations(
                [("slideMaster", "../slideMasters/slideMaster1.xml", False)]
            )
        save(place, parts | self.parts, self._kinds())

    def _kinds(self) -> dict[str, str]:
        slide, kind = f"{TYPE}.presentationml", "ppt/slide"
        named = {"ppt/presentation.xml": f"{slide}.presentation.main+xml"}
        named |= {f"{kind}s/slide{n}.xml": f"{slide}.slide+xml" for n in range(1, self.count + 1)}
        named |= {
            f"ppt/notesSlides/notesSlide{n}.xml": f"{slide}.notesSlide+xml" for n in self.noted
        }
        named |= {f"{kind}Layouts/slideLayout{n}.xml": f"{slide}.slideLayout+xml" for n in (1, 2)}
        named |= {f"ppt/theme/theme{n}.xml": f"{TYPE}.theme+xml" for n in (1, 2)}
        named[f"{kind}Masters/slideMaster1.xml"] = f"{slide}.slideMaster+xml"
        named["ppt/notesMasters/notesMaster1.xml"] = f"{slide}.notesMaster+xml"
        return named


def _runs(found: Iterable[blocks.Block]) -> list[list[blocks.Block]]:
    """Text that stands in one box; a table and code have their own."""
    runs: list[list[blocks.Block]] = []
    for block in found:
        alone = isinstance(block, blocks.Table | blocks.Code)
        if alone or not runs or isinstance(runs[-1][0], blocks.Table | blocks.Code):
            runs.append([block])
        else:
            runs[-1].append(block)
    return runs


def tree(shapes: str) -> str:
    empty = (
        '<a:xfrm><a:off x="0" y="0"/><a:ext cx="0" cy="0"/>'
        '<a:chOff x="0" y="0"/><a:chExt cx="0" cy="0"/></a:xfrm>'
    )
    return (
        '<p:spTree><p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr>'
        f"<p:grpSpPr>{empty}</p:grpSpPr>{shapes}</p:spTree>"
    )


def holder(
    number: int, kind: str, where: str, words: str = "", index: int = 0, more: str = ""
) -> str:
    told = f' idx="{index}"' if index else ""
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="{number}" name="{kind} {number}"/><p:cNvSpPr/>'
        f'<p:nvPr><p:ph type="{kind}"{told}/></p:nvPr></p:nvSpPr>'
        f'<p:spPr>{where}<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></p:spPr>'
        f"<p:txBody><a:bodyPr{more}/><a:lstStyle/>{words or '<a:p/>'}</p:txBody></p:sp>"
    )


NOTE = holder(3, "body", box(40, 500, 460, 400), index=1)
_MAP = (
    '<p:clrMap bg1="lt1" tx1="dk1" bg2="lt2" tx2="dk2" accent1="accent1" accent2="accent2" '
    'accent3="accent3" accent4="accent4" accent5="accent5" accent6="accent6" '
    'hlink="hlink" folHlink="folHlink"/>'
)
_BACK = '<p:bg><p:bgRef idx="1001"><a:schemeClr val="bg1"/></p:bgRef></p:bg>'
_TITLE = box(EDGE, 36, WIDTH - 2 * EDGE, 80)
_BODY = box(EDGE, TOP, WIDTH - 2 * EDGE, HEIGHT - TOP - BOTTOM)


def _letters(size: int, colour: str = "tx1") -> str:
    return (
        f'<a:defRPr sz="{size * 100}"><a:solidFill><a:schemeClr val="{colour}"/></a:solidFill>'
        '<a:latin typeface="+mn-lt"/></a:defRPr>'
    )


_LOW = ' anchor="b"'
MASTER = (
    f"<p:sldMaster {SPACES}><p:cSld>{_BACK}"
    f"{tree(holder(2, 'title', _TITLE, more=_LOW) + holder(3, 'body', _BODY, index=1))}</p:cSld>"
    f'{_MAP}<p:sldLayoutIdLst><p:sldLayoutId id="2147483649" r:id="rId1"/>'
    '<p:sldLayoutId id="2147483650" r:id="rId2"/></p:sldLayoutIdLst><p:txStyles>'
    f"<p:titleStyle><a:lvl1pPr>{_letters(32, 'tx2')}</a:lvl1pPr></p:titleStyle>"
    f"<p:bodyStyle><a:lvl1pPr>{_letters(20)}</a:lvl1pPr></p:bodyStyle>"
    f"<p:otherStyle><a:lvl1pPr>{_letters(18)}</a:lvl1pPr></p:otherStyle></p:txStyles></p:sldMaster>"
)


def _layout(kind: str, name: str, shapes: str) -> str:
    return (
        f'<p:sldLayout {SPACES} type="{kind}" preserve="1"><p:cSld name="{name}">{tree(shapes)}</p:cSld>'
        "<p:clrMapOvr><a:masterClrMapping/></p:clrMapOvr></p:sldLayout>"
    )


LAYOUTS = (
    _layout(
        "title",
        "Title Slide",
        holder(2, "ctrTitle", box(EDGE, 150, WIDTH - 2 * EDGE, 110), more=_LOW)
        + holder(3, "subTitle", box(EDGE, 270, WIDTH - 2 * EDGE, 120), index=1),
    ),
    _layout("titleOnly", "Title Only", holder(2, "title", _TITLE, more=_LOW)),
)
NOTES_MASTER = f"<p:notesMaster {SPACES}><p:cSld>{_BACK}{tree(NOTE)}</p:cSld>{_MAP}</p:notesMaster>"


def _theme() -> str:
    colours = {
        "dk1": "1A1A1A",
        "lt1": "FFFFFF",
        "dk2": "1F3864",
        "lt2": "E8ECF4",
        "accent1": "2F5DD0",
        "accent2": "C2571A",
        "accent3": "4B7F52",
        "accent4": "8A5AA8",
        "accent5": "2A8C94",
        "accent6": "9A7B1F",
        "hlink": "0563C1",
        "folHlink": "6B4C9A",
    }
    told = "".join(
        f'<a:{name}><a:srgbClr val="{value}"/></a:{name}>' for name, value in colours.items()
    )
    font = '<a:latin typeface="Calibri"/><a:ea typeface=""/><a:cs typeface=""/>'
    fill = '<a:solidFill><a:schemeClr val="phClr"/></a:solidFill>'
    line = f'<a:ln w="9525">{fill}<a:prstDash val="solid"/></a:ln>'
    effect = "<a:effectStyle><a:effectLst/></a:effectStyle>"
    return (
        f'<a:theme xmlns:a="{DRAWING}" name="Plain"><a:themeElements><a:clrScheme name="Plain">{told}'
        f'</a:clrScheme><a:fontScheme name="Plain"><a:majorFont>{font}</a:majorFont>'
        f'<a:minorFont>{font}</a:minorFont></a:fontScheme><a:fmtScheme name="Plain">'
        f"<a:fillStyleLst>{fill * 3}</a:fillStyleLst><a:lnStyleLst>{line * 3}</a:lnStyleLst>"
        f"<a:effectStyleLst>{effect * 3}</a:effectStyleLst><a:bgFillStyleLst>{fill * 3}</a:bgFillStyleLst>"
        "</a:fmtScheme></a:themeElements></a:theme>"
    )


THEME = _theme()


if __name__ == "__main__":
    raise SystemExit(main())
