#!/usr/bin/env python3
"""A Word document (Office Open XML, ECMA-376) of a Markdown text, without anything to install."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "document-parts" / "scripts"))

import blocks  # a skill beside this one
from office import OFFICE, PACKAGE, relations, save, text_of
from pictures import CannotBeUsed, read_picture

EMU = 914_400
"""Units of drawings in an inch; a twentieth of a point is the unit of all else."""
MARGIN = 1_418
PAPER = {"a4": (11_906, 16_838), "letter": (12_240, 15_840)}
MAIN = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
BULLETS = "•◦▪"
HEAD_OF_TABLE = '<w:shd w:val="clear" w:color="auto" w:fill="E8ECF4"/>'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path, help="Markdown, UTF-8")
    parser.add_argument("document", type=Path)
    parser.add_argument("--title", default="")
    parser.add_argument("--author", default="")
    parser.add_argument("--language", default="en-GB")
    parser.add_argument("--letter", action="store_true")
    parser.add_argument("--landscape", action="store_true")
    given = parser.parse_args()
    try:
        text = given.text.read_text(encoding="utf-8-sig")
        document = Document(given, given.text.parent)
        document.add_all(blocks.parse(text))
        document.save(given.document)
    except (CannotBeUsed, OSError, UnicodeDecodeError) as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    sys.stdout.write(json.dumps({"made": str(given.document), **document.counted}) + "\n")
    return 0


class Document:
    def __init__(self, given: argparse.Namespace, folder: Path) -> None:
        self.given, self.folder = given, folder
        width, height = PAPER["letter" if given.letter else "a4"]
        self.paper = (height, width) if given.landscape else (width, height)
        self.body: list[str] = []
        self.links: list[tuple[str, str, bool]] = [
            ("styles", "styles.xml", False),
            ("numbering", "numbering.xml", False),
            ("footer", "footer1.xml", False),
        ]
        """(kind, target, whether it leads outside), by number from 1."""
        self.media: dict[str, bytes] = {}
        self.numbered = 0
        self.counted = {"headings": 0, "tables": 0, "pictures": 0}
        self._list = 0
        """The numbered list that goes on, if any."""
        self._before: blocks.Block | None = None
        if given.title:
            self._paragraph([blocks.Span(given.title)], style="Title")

    def add_all(self, found: Iterable[blocks.Block]) -> None:
        for block in found:
            self._add(block)
            self._before = block

    def _add(self, block: blocks.Block) -> None:
        if isinstance(block, blocks.Heading):
            self.counted["headings"] += 1
            self._paragraph(block.spans, style=f"Heading{block.level}")
        elif isinstance(block, blocks.Paragraph):
            self._paragraph(block.spans, style="Quote" if block.quoted else "")
        elif isinstance(block, blocks.Item):
            self._item(block)
        elif isinstance(block, blocks.Table):
            self.counted["tables"] += 1
            self._table(block)
        elif isinstance(block, blocks.Code):
            for line in block.text.split("\n"):
                self._paragraph([blocks.Span(line)], style="Code")
        elif isinstance(block, blocks.Picture):
            self.counted["pictures"] += 1
            self._picture(block)
        else:
            self.body.append('<w:p><w:r><w:br w:type="page"/></w:r></w:p>')

    def _paragraph(self, spans: Sequence[blocks.Span], style: str = "", more: str = "") -> None:
        self.body.append(self._p(spans, style, more))

    def _p(self, spans: Sequence[blocks.Span], style: str = "", more: str = "") -> str:
        named = f'<w:pStyle w:val="{style}"/>' if style else ""
        how = f"<w:pPr>{named}{more}</w:pPr>" if named or more else ""
        return f"<w:p>{how}{''.join(map(self._run, spans))}</w:p>"

    def _run(self, span: blocks.Span) -> str:
        how = ""
        if span.link:
            how += '<w:rStyle w:val="Hyperlink"/>'
        elif span.code:
            how += '<w:rStyle w:val="CodeInText"/>'
        how += "<w:b/>" * span.bold + "<w:i/>" * span.italic
        run = (
            f"<w:r>{f'<w:rPr>{how}</w:rPr>' if how else ''}"
            f'<w:t xml:space="preserve">{text_of(span.text)}</w:t></w:r>'
        )
        if not span.link:
            return run
        if span.link.startswith(("http://", "https://", "mailto:")):
            number = self._link("hyperlink", span.link, True)
            return f'<w:hyperlink r:id="{number}">{run}</w:hyperlink>'
        return run  # a file of the workspace is not where the document will be

    def _link(self, kind: str, target: str, outside: bool = False) -> str:
        wanted = (kind, target, outside)
        if wanted not in self.links:
            self.links.append(wanted)
        return f"rId{self.links.index(wanted) + 1}"

    def _item(self, item: blocks.Item) -> None:
        if not isinstance(self._before, blocks.Item):
            self._list = 0
        if item.number is not None and self._list == 0:
            self.numbered += 1
            self._list = self.numbered + 1
        number = 1 if item.number is None else self._list
        more = f'<w:numPr><w:ilvl w:val="{item.level}"/><w:numId w:val="{number}"/></w:numPr>'
        self._paragraph(item.spans, style="ListParagraph", more=more)

    def _table(self, table: blocks.Table) -> None:
        columns = len(table.rows[0])
        width = (self.paper[0] - 2 * MARGIN) // columns
        grid = f'<w:gridCol w:w="{width}"/>' * columns
        rows = []
        for head, row in ((place == 0, row) for place, row in enumerate(table.rows)):
            shade = HEAD_OF_TABLE if head else ""
            cells = "".join(
                f'<w:tc><w:tcPr><w:tcW w:w="{width}" w:type="dxa"/>{shade}</w:tcPr>'
                f"{self._p([replace(span, bold=span.bold or head) for span in cell])}</w:tc>"
                for cell in row
            )
            rows.append(f"<w:tr>{'<w:trPr><w:tblHeader/></w:trPr>' if head else ''}{cells}</w:tr>")
        self.body.append(
            '<w:tbl><w:tblPr><w:tblStyle w:val="TableGrid"/><w:tblW w:w="0" w:type="auto"/></w:tblPr>'
            f"<w:tblGrid>{grid}</w:tblGrid>{''.join(rows)}</w:tbl><w:p/>"
        )

    def _picture(self, picture: blocks.Picture) -> None:
        file = read_picture(self.folder / picture.path, picture.path)
        name = f"picture{len(self.media) + 1}.{file.kind}"
        self.media[name] = file.data
        # 96 pixels an inch, and never wider or higher than what a page has.
        wide, high = (round((side - 2 * MARGIN) / 1440 * EMU) for side in self.paper)
        share = min(1.0, wide / (file.width * EMU / 96), high * 0.9 / (file.height * EMU / 96))
        across = round(file.width * EMU / 96 * share)
        down = round(file.height * EMU / 96 * share)
        number, words = len(self.media), quoteattr(picture.words)
        link = self._link("image", f"media/{name}")
        self.body.append(
            f'<w:p><w:r><w:drawing><wp:inline distT="0" distB="0" distL="0" distR="0">'
            f'<wp:extent cx="{across}" cy="{down}"/>'
            f'<wp:docPr id="{number}" name="Picture {number}" descr={words}/>'
            f'<a:graphic><a:graphicData uri="{DRAWING}/picture"><pic:pic><pic:nvPicPr>'
            f'<pic:cNvPr id="{number}" name="Picture {number}" descr={words}/><pic:cNvPicPr/>'
            f'</pic:nvPicPr><pic:blipFill><a:blip r:embed="{link}"/>'
            "<a:stretch><a:fillRect/></a:stretch></pic:blipFill><pic:spPr><a:xfrm>"
            f'<a:off x="0" y="0"/><a:ext cx="{across}" cy="{down}"/></a:xfrm>'
            '<a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr></pic:pic>'
            "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
        )

    # --- the package --------------------------------------------------------------------------

    def save(self, place: Path) -> None:
        parts: dict[str, str | bytes] = {
            "_rels/.rels": relations(PACKAGE_PARTS),
            "docProps/core.xml": self._about(),
            "word/document.xml": self._document(),
            "word/styles.xml": styles(self.given.language),
            "word/numbering.xml": self._numbering(),
            "word/footer1.xml": FOOTER,
            "word/_rels/document.xml.rels": relations(self.links),
        }
        parts |= {f"word/media/{name}": data for name, data in self.media.items()}
        save(place, parts, KINDS)

    def _about(self) -> str:
        return (
            f'<cp:coreProperties xmlns:cp="{PACKAGE}/metadata/core-properties" '
            'xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<dc:title>{text_of(self.given.title)}</dc:title>"
            f"<dc:creator>{text_of(self.given.author)}</dc:creator>"
            f"<dc:language>{text_of(self.given.language)}</dc:language></cp:coreProperties>"
        )

    def _document(self) -> str:
        width, height = self.paper
        turned = ' w:orient="landscape"' if self.given.landscape else ""
        edges = " ".join(f'w:{side}="{MARGIN}"' for side in ("top", "right", "bottom", "left"))
        return (
            f'<w:document xmlns:w="{MAIN}" xmlns:r="{OFFICE}" xmlns:a="{DRAWING}/main" '
            f'xmlns:pic="{DRAWING}/picture" xmlns:wp="{DRAWING}/wordprocessingDrawing"><w:body>'
            f"{''.join(self.body)}<w:sectPr>"
            f'<w:footerReference w:type="default" r:id="rId3"/>'
            f'<w:pgSz w:w="{width}" w:h="{height}"{turned}/>'
            f'<w:pgMar {edges} w:header="709" w:footer="709" w:gutter="0"/>'
            "</w:sectPr></w:body></w:document>"
        )

    def _numbering(self) -> str:
        def levels(form: str, shown: Sequence[str]) -> str:
            return "".join(
                f'<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
                f'<w:lvlText w:val="{shown[level % len(shown)].format(level + 1)}"/><w:lvlJc w:val="left"/>'
                f'<w:pPr><w:ind w:left="{360 * (level + 2)}" w:hanging="360"/></w:pPr></w:lvl>'
                for level in range(9)
            )

        again = "".join(
            f'<w:lvlOverride w:ilvl="{level}"><w:startOverride w:val="1"/></w:lvlOverride>'
            for level in range(9)
        )
        lists = "".join(
            f'<w:num w:numId="{number + 2}"><w:abstractNumId w:val="1"/>{again}</w:num>'
            for number in range(self.numbered)
        )
        return (
            f'<w:numbering xmlns:w="{MAIN}">'
            f'<w:abstractNum w:abstractNumId="0"><w:multiLevelType w:val="hybridMultilevel"/>'
            f"{levels('bullet', BULLETS)}</w:abstractNum>"
            f'<w:abstractNum w:abstractNumId="1"><w:multiLevelType w:val="multilevel"/>'
            f"{levels('decimal', ('%{}.',))}</w:abstractNum>"
            f'<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>{lists}</w:numbering>'
        )


PACKAGE_PARTS = [
    ("officeDocument", "word/document.xml", False),
    (f"{PACKAGE}/relationships/metadata/core-properties", "docProps/core.xml", False),
]
KINDS = {
    "word/document.xml": f"{TYPE}.document.main+xml",
    "word/styles.xml": f"{TYPE}.styles+xml",
    "word/numbering.xml": f"{TYPE}.numbering+xml",
    "word/footer1.xml": f"{TYPE}.footer+xml",
    "docProps/core.xml": "application/vnd.openxmlformats-package.core-properties+xml",
}
FOOTER = (
    f'<w:ftr xmlns:w="{MAIN}"><w:p><w:pPr><w:jc w:val="center"/></w:pPr>'
    '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
    '<w:r><w:instrText xml:space="preserve"> PAGE </w:instrText></w:r>'
    '<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p></w:ftr>'
)


def styles(language: str) -> str:
    """Sizes are half points, distances twentieths of a point."""

    def style(name: str, shown: str, run: str, paragraph: str, kind: str = "paragraph") -> str:
        based = '<w:basedOn w:val="Normal"/>' if kind == "paragraph" and name != "Normal" else ""
        default = ' w:default="1"' if name == "Normal" else ""
        return (
            f'<w:style w:type="{kind}" w:styleId="{name}"{default}><w:name w:val="{shown}"/>{based}'
            f"<w:qFormat/>{f'<w:pPr>{paragraph}</w:pPr>' if paragraph else ''}"
            f"{f'<w:rPr>{run}</w:rPr>' if run else ''}</w:style>"
        )

    mono = '<w:rFonts w:ascii="Consolas" w:hAnsi="Consolas" w:cs="Consolas"/>'
    heads = "".join(
        style(
            f"Heading{level}",
            f"heading {level}",
            f'<w:b/><w:color w:val="1F3864"/><w:sz w:val="{size}"/>',
            f'<w:keepNext/><w:keepLines/><w:spacing w:before="{before}" w:after="80"/>'
            f'<w:outlineLvl w:val="{level - 1}"/>',
        )
        for level, (size, before) in enumerate(
            [(34, 360), (28, 280), (25, 240), (23, 200), (22, 160), (22, 160)], 1
        )
    )
    edge = "".join(
        f'<w:{side} w:val="single" w:sz="4" w:space="0" w:color="A6A6A6"/>'
        for side in ("top", "left", "bottom", "right", "insideH", "insideV")
    )
    return (
        f'<w:styles xmlns:w="{MAIN}"><w:docDefaults><w:rPrDefault><w:rPr>'
        '<w:rFonts w:ascii="Calibri" w:hAnsi="Calibri" w:eastAsia="Calibri" w:cs="Calibri"/>'
        f'<w:sz w:val="22"/><w:lang w:val={quoteattr(language)}/></w:rPr></w:rPrDefault>'
        '<w:pPrDefault><w:pPr><w:spacing w:after="140" w:line="276" w:lineRule="auto"/></w:pPr>'
        "</w:pPrDefault></w:docDefaults>"
        + style("Normal", "Normal", "", "")
        + style("Title", "Title", '<w:b/><w:sz w:val="48"/>', '<w:spacing w:after="240"/>')
        + heads
        + style("ListParagraph", "List Paragraph", "", '<w:spacing w:after="60"/>')
        + style(
            "Quote",
            "Quote",
            '<w:i/><w:color w:val="595959"/>',
            '<w:ind w:left="567" w:right="567"/>',
        )
        + style(
            "Code",
            "Code",
            f'{mono}<w:sz w:val="19"/>',
            '<w:shd w:val="clear" w:color="auto" w:fill="F2F2F2"/>'
            '<w:spacing w:after="0" w:line="240" w:lineRule="auto"/>',
        )
        + style("CodeInText", "Code in text", mono, "", kind="character")
        + style(
            "Hyperlink",
            "Hyperlink",
            '<w:color w:val="0563C1"/><w:u w:val="single"/>',
            "",
            kind="character",
        )
        + '<w:style w:type="table" w:styleId="TableGrid"><w:name w:val="Table Grid"/>'
        '<w:pPr><w:spacing w:after="0"/></w:pPr><w:tblPr>'
        f"<w:tblBorders>{edge}</w:tblBorders><w:tblCellMar>"
        '<w:left w:w="108" w:type="dxa"/><w:right w:w="108" w:type="dxa"/></w:tblCellMar></w:tblPr>'
        "</w:style></w:styles>"
    )


if __name__ == "__main__":
    raise SystemExit(main())
