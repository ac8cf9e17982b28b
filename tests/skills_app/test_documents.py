"""Shipped skills that make documents: other libraries open what they make, and nothing written is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from pathlib import Path

import docx
import openpyxl
import pptx
import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from skills_app.seeding import SHIPPED

SCRIPTS = {
    "docx": SHIPPED / "word-documents/scripts/to_docx.py",
    "xlsx": SHIPPED / "spreadsheets/scripts/to_xlsx.py",
    "pptx": SHIPPED / "slide-decks/scripts/to_pptx.py",
    "pdf": SHIPPED / "pdf-files/scripts/to_pdf.py",
}
TEXT = """# Report

Some **bold** words, *leaning* ones, `code`, [a link](https://example.org/?a=1&b=2), <tags> & more
that go on \\*here\\*.

1. first
   - inside
2. second

Between.

1. anew

| Ship | Dues |
|---|---|
| Ada \\| Co | **4** |

> Quoted.

```
def f():
    return "x"
```

---

![A red field](red.{ending})
"""


def run(kind: str, *given: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", SCRIPTS[kind], *map(str, given)],
        capture_output=True,
        text=True,
        check=False,
    )


def made(kind: str, folder: Path, text: str, *more: str) -> Path:
    source = folder / ("given.json" if kind == "xlsx" else "given.md")
    source.write_text(text)
    done = run(kind, source, folder / f"out.{kind}", *more)
    assert done.returncode == 0, done.stderr
    return folder / f"out.{kind}"


def refused(kind: str, folder: Path, text: str) -> str:
    source = folder / ("given.json" if kind == "xlsx" else "given.md")
    source.write_text(text)
    done = run(kind, source, folder / f"refused.{kind}")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not (folder / f"refused.{kind}").exists()
    return done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for ending in ("png", "jpg"):
        Image.new("RGB", (60, 40), "red").save(tmp_path / f"red.{ending}")
    return tmp_path


def test_a_word_document_has_real_headings_lists_tables_links_and_pictures(folder):
    place = made("docx", folder, TEXT.format(ending="png"), "--title", "Dues & more")
    document = docx.Document(str(place))
    told = [(each.style.name, each.text) for each in document.paragraphs if each.text]
    assert told[:3] == [
        ("Title", "Dues & more"),
        ("Heading 1", "Report"),
        ("Normal", "Some bold words, leaning ones, code, a link, <tags> & more that go on *here*."),
    ]
    items = [each for each in document.paragraphs if each.style.name == "List Paragraph"]
    numbering = [each._p.pPr.numPr for each in items]
    assert [each.text for each in items] == ["first", "inside", "second", "anew"]
    assert [each.ilvl.val for each in numbering] == [0, 1, 0, 0]
    first, inside, second, anew = (each.numId.val for each in numbering)
    assert first == second
    assert len({first, inside, anew}) == 3
    (table,) = document.tables
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["Ship", "Dues"],
        ["Ada | Co", "4"],
    ]
    bold = [run.text for run in document.paragraphs[2].runs if run.bold]
    assert bold == ["bold"]
    links = [each.target_ref for each in document.part.rels.values() if each.is_external]
    assert links == ["https://example.org/?a=1&b=2"]
    (picture,) = document.inline_shapes
    assert picture._inline.docPr.get("descr") == "A red field"
    assert [text for style, text in told if style == "Code"] == ["def f():", '    return "x"']
    assert made("docx", folder, "Again") == place
    again = place.read_bytes()
    assert made("docx", folder, "Again").read_bytes() == again


def test_a_workbook_keeps_values_what_they_are(folder):
    rows = [
        ["Ada", "2026-03-01", 1200.5, {"formula": "=C2/C$4"}],
        ["=1+1", "2026-04-15", 800, {"formula": "=C3/C$4"}],
        ["All", None, {"formula": "=SUM(C2:C3)"}, True],
    ]
    columns = [
        {"header": "Ship", "width": 30},
        {"header": "Since", "format": "date"},
        {"header": "Dues", "format": "money"},
        {"header": "Share", "format": "percent"},
    ]
    sheets = [
        {"name": "Dues & <more>", "columns": columns, "rows": rows, "total_row": True},
        {"name": "Bare", "rows": [[1, "two"]]},
    ]
    book = openpyxl.load_workbook(made("xlsx", folder, json.dumps({"sheets": sheets})))
    assert book.sheetnames == ["Dues & <more>", "Bare"]
    sheet = book.worksheets[0]
    assert [cell.value for cell in sheet[1]] == ["Ship", "Since", "Dues", "Share"]
    assert (sheet["A3"].value, sheet["A3"].data_type) == ("=1+1", "s"), "text is never reckoned"
    assert (sheet["D2"].value, sheet["D2"].number_format) == ("=C2/C$4", "0.0%")
    assert str(sheet["B3"].value) == "2026-04-15 00:00:00"
    assert (sheet["C3"].value, sheet["D4"].value) == (800, True)
    assert sheet["C4"].font.b
    assert (sheet.freeze_panes, sheet.auto_filter.ref) == ("A2", "A1:D3")
    assert [cell.value for cell in book["Bare"][1]] == [1, "two"]


def test_a_csv_file_becomes_a_workbook_without_touching_codes(folder):
    (folder / "ships.csv").write_text("ship;code;dues\nAda;0123;4.5\n=1+1;7;-3\n")
    assert run("xlsx", folder / "ships.csv", folder / "ships.xlsx").returncode == 0
    sheet = openpyxl.load_workbook(folder / "ships.xlsx").active
    assert sheet is not None
    assert [[cell.value for cell in row] for row in sheet.rows] == [
        ["ship", "code", "dues"],
        ["Ada", "0123", 4.5],
        ["=1+1", 7, -3],
    ]


DECK = """# Where we stand
March 2026

## Sales grew
- Renewals held
  - two are open

> Say where it is from.

## By region
| Region | Sales |
|---|---|
| North | 120 |

![A red field](red.png)
"""


def test_a_deck_has_its_title_bullets_tables_pictures_and_notes(folder):
    deck = pptx.Presentation(str(made("pptx", folder, DECK)))
    slides = list(deck.slides)
    assert [slide.slide_layout.name for slide in slides] == [
        "Title Slide",
        "Title Only",
        "Title Only",
    ]
    assert [slide.shapes.title.text for slide in slides] == [
        "Where we stand",
        "Sales grew",
        "By region",
    ]
    assert slides[0].placeholders[1].text_frame.text == "March 2026"
    assert slides[1].shapes[1].text_frame.text == "Renewals held\ntwo are open"
    assert [p.level for p in slides[1].shapes[1].text_frame.paragraphs] == [0, 1]
    assert slides[1].notes_slide.notes_text_frame.text == "Say where it is from."
    table = next(shape.table for shape in slides[2].shapes if shape.has_table)
    assert [[cell.text for cell in row.cells] for row in table.rows] == [
        ["Region", "Sales"],
        ["North", "120"],
    ]
    assert [shape.image.ext for shape in slides[2].shapes if hasattr(shape, "image")] == ["png"]
    (folder / "given.md").write_text("## Much\n" + "- A line of the list\n" * 30)
    told = json.loads(run("pptx", folder / "given.md", folder / "much.pptx").stdout)
    assert told["full"] == [1]


def test_what_a_title_slide_has_no_room_for_stands_on_the_next_one(folder):
    text = (
        "# Where we stand\nMarch\n\n| Region | Sales |\n|---|---|\n| North | 120 |\n\nAll told.\n"
    )
    title, after = pptx.Presentation(str(made("pptx", folder, text))).slides
    assert title.placeholders[1].text_frame.text == "March"
    assert any(shape.has_table for shape in after.shapes)
    assert "All told." in [shape.text_frame.text for shape in after.shapes if shape.has_text_frame]


def test_a_pdf_holds_every_word_on_a_page_and_names_letters_it_cannot_write(folder):
    rows = "".join(f"| {n} | {'cell text ' * 30}|\n" for n in range(60))
    high = "| high | " + " ".join(f"w{n}" for n in range(3_000)) + " |\n"
    text = f"{TEXT.format(ending='jpg')}\nGrüße → 3\n\n| n | said |\n|---|---|\n{rows}{high}"
    reader = pypdf.PdfReader(made("pdf", folder, text, "--title", "Dues"), strict=True)
    assert reader.metadata is not None
    assert reader.metadata.title == "Dues"
    assert [each.title for each in reader.outline] == ["Dues", "Report"]
    told = [page.extract_text() for page in reader.pages]
    assert told[0].startswith("Dues\nReport\nSome bold words, leaning ones, code, a link, <tags>")
    whole = "\n".join(told)
    assert "Grüße -> 3" in whole
    assert {f"w{n}" for n in range(3_000)} <= set(whole.split())
    pages = [page for page in told if "cell text" in page]
    assert len(pages) > 2
    assert all("n said" in page for page in pages), "the head is repeated"
    assert f"1 / {len(told)}" in told[0]
    links = [each.get_object()["/A"]["/URI"] for each in reader.pages[0].annotations or ()]
    assert links == ["https://example.org/?a=1&b=2"]
    assert [len(page.images) for page in reader.pages[:2]] == [0, 1]
    assert "Ж 中" in refused("pdf", folder, "Ж and 中")


@pytest.mark.parametrize("kind", ["docx", "pptx", "pdf"])
def test_a_picture_that_is_none_is_named_and_nothing_is_made(folder, kind):
    (folder / "text.jpg").write_text("no picture")
    for name in ("text.jpg", "missing.jpg"):
        assert name in refused(kind, folder, f"## A\n![x]({name})")


@pytest.mark.parametrize(
    ("described", "why"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "sheets"),
        ('{"sheets": [{"name": "A"}, {"name": "a"}]}', "Two sheets"),
        ('{"sheets": [{"name": "a/b"}]}', "name"),
        ('{"sheets": [{"rows": [[{"formula": "1"}]]}]}', "A1"),
        ('{"sheets": [{"rows": [[[]]]}]}', "A1"),
        ('{"sheets": [{"rows": [[NaN]]}]}', "number"),
        ('{"sheets": [{"columns": [{"format": "date"}], "rows": [["2026-02-30"]]}]}', "A2"),
        ('{"sheets": [{"columns": [{"format": "euro"}]}]}', "format"),
    ],
)
def test_a_workbook_that_excel_would_not_open_is_refused(folder, described, why):
    assert why in refused("xlsx", folder, described)


@pytest.fixture(scope="module")
def parsed():
    sys.path.insert(0, str(SHIPPED / "document-parts/scripts"))
    try:
        import blocks  # noqa: PLC0415 - a skill's module

        yield blocks
    finally:
        sys.path.pop(0)


@given(st.text(alphabet="ab *_`[](!)|>#-\n1.\\~", max_size=120))
def test_no_letter_that_was_written_is_lost_in_blocks(parsed, text):
    told: list[str] = []
    for block in parsed.parse(text):
        told += [span.text + span.link for span in getattr(block, "spans", [])]
        told += [
            s.text + s.link for row in getattr(block, "rows", []) for cell in row for s in cell
        ]
        told.append(getattr(block, "text", "") + getattr(block, "path", ""))
        told.append(getattr(block, "words", ""))
    letters = [each for each in "".join(told) if unicodedata.category(each) == "Ll"]
    # Behind a fence stands what the code is written in.
    written = "".join(
        line for line in text.split("\n") if not line.lstrip().startswith(("```", "~~~"))
    )
    assert len(letters) >= sum(unicodedata.category(each) == "Ll" for each in written)
