"""PDF and Office documents of a workspace, read as text by `read_file`."""

from __future__ import annotations

import zipfile
from datetime import date
from io import BytesIO

import pytest
from openpyxl import Workbook

from harness.content import text_of
from tests.papers import letter, talk, workbook
from tests.pictures import paper
from tests.tools_app.web_world import pdf
from tools_app import documents


def said(outcome) -> str:
    return text_of(outcome.content)


async def test_a_word_document_is_read_with_its_headings_and_tables_in_order(root, call):
    body = letter("Seven metres.", heading="The quay", rows=(("Berth", "Depth"), ("A", "7")))
    (root / "quay.DOCX").write_bytes(body)
    outcome = await call("read_file", path="quay.DOCX")
    assert not outcome.is_error
    assert "quay.DOCX (the text of the Word document): lines 1–" in said(outcome)
    lines = [line.partition("\t")[2] for line in said(outcome).splitlines()[1:]]
    assert lines == ["## The quay", "Seven metres.", "Berth\tDepth", "A\t7"]


@pytest.mark.parametrize("style", ["Heading 0", "Heading ²", "Heading " + "9" * 11])
async def test_a_style_that_is_named_like_a_heading_is_none_of_its_levels(root, call, style):
    papers = zipfile.ZipFile(BytesIO(letter("Seven metres.", heading="The quay")))
    with papers, zipfile.ZipFile(root / "odd.docx", "w") as odd:
        for name in papers.namelist():
            named = papers.read(name).replace(b'"heading 2"', f'"{style}"'.encode())
            odd.writestr(name, named.replace(b'"Heading 2"', f'"{style}"'.encode()))
    outcome = await call("read_file", path="odd.docx")
    assert not outcome.is_error
    lines = [line.partition("\t")[2] for line in said(outcome).splitlines()[1:]]
    assert lines == ["The quay", "Seven metres."]


async def test_a_workbook_is_read_sheet_by_sheet_and_dates_are_dates(root, call):
    (root / "a.xlsx").write_bytes(workbook("Berths", ("A", 7.5), ("B", date(2026, 3, 1))))
    text = said(await call("read_file", path="a.xlsx"))
    assert "[Sheet Berths]" in text
    assert "A\t7.5" in text
    assert "B\t2026-03-01" in text


@pytest.mark.parametrize("claimed", ["A1:XFD1048576", "A1:A1"])
async def test_what_a_workbook_says_of_its_own_size_hides_nothing_and_costs_nothing(
    root, call, claimed
):
    book = Workbook()
    sheet = book.worksheets[0]
    sheet["A1"], sheet["C1048576"] = "near", "far"
    body, anew = BytesIO(), BytesIO()
    book.save(body)
    with zipfile.ZipFile(body) as parts, zipfile.ZipFile(anew, "w") as kept:
        for name in parts.namelist():
            part = parts.read(name).replace(b'"A1:C1048576"', f'"{claimed}"'.encode())
            kept.writestr(name, part)
    (root / "a.xlsx").write_bytes(anew.getvalue())
    text = said(await call("read_file", path="a.xlsx"))
    assert "near" in text
    assert "far" in text


async def test_a_presentation_is_read_slide_by_slide_with_its_notes(root, call):
    (root / "a.pptx").write_bytes(talk(("One", "Quay"), ("Two", "Pier"), notes="Slowly"))
    text = said(await call("read_file", path="a.pptx"))
    assert text.index("[Slide 1]") < text.index("Quay") < text.index("[Slide 2]")
    assert "Notes: Slowly" in text


async def test_a_pdf_is_read_in_stretches_like_any_text(root, call):
    (root / "a.pdf").write_bytes(pdf("Seven metres at the quay.", "Five at the pier."))
    text = said(await call("read_file", path="a.pdf", start_line=5))
    assert "a.pdf (the text of the PDF): lines 5–5 of 5" in text
    assert "Five at the pier." in text
    assert "Seven" not in text


async def test_a_document_of_which_only_the_beginning_is_read_says_so(root, call, monkeypatch):
    monkeypatch.setattr(documents, "CHARACTERS", 30)
    (root / "a.docx").write_bytes(letter("Seven metres.", "Five at the pier, and two.", "End."))
    text = said(await call("read_file", path="a.docx"))
    assert "Five at" in text
    assert "End." not in text
    assert "only its beginning was read" in text


def _bomb() -> bytes:
    kept = BytesIO()
    with zipfile.ZipFile(BytesIO(letter("Words."))) as good, zipfile.ZipFile(kept, "w") as bad:
        for name in good.namelist():
            body = good.read(name)
            if name == "word/document.xml":
                body = body.replace(b"Words.", b"A" * 40_000_000)
            bad.writestr(name, body, zipfile.ZIP_DEFLATED)
    return kept.getvalue()


@pytest.mark.parametrize(
    ("name", "body", "words"),
    [
        ("a.pdf", b"%PDF-1.7 nothing", "The PDF “a.pdf” cannot be read: it is damaged"),
        ("a.pdf", paper(), "it may be scanned"),
        ("a.pdf", paper(password="x"), "locked with a password"),
        ("a.docx", letter("Words.")[:-200], "The Word document “a.docx” cannot be read: it is"),
        ("a.docx", workbook("No letter", ("A",)), "it is damaged"),
        ("a.xlsx", letter("No sheets"), "cannot be read"),
        ("a.pptx", letter(""), "cannot be read"),
        ("a.docx", letter(), "there is no text in it"),
    ],
)
async def test_a_document_that_cannot_be_read_says_why(root, call, name, body, words):
    (root / name).write_bytes(body)
    outcome = await call("read_file", path=name)
    assert outcome.is_error
    assert words in said(outcome)


async def test_a_document_that_unfolds_beyond_measure_ends_its_reader_alone(root, call):
    (root / "a.docx").write_bytes(_bomb())
    outcome = await call("read_file", path="a.docx")
    assert outcome.is_error
    assert "cannot be read" in said(outcome) or "takes too long" in said(outcome)


async def test_a_document_is_no_text_that_could_be_edited(root, call):
    (root / "a.docx").write_bytes(letter("Words."))
    outcome = await call("edit_file", path="a.docx", old_text="Words.", new_text="More.")
    assert outcome.is_error
    assert "not a text file" in said(outcome)
