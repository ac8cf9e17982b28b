"""Office documents with a few words, for tests of what reads them."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from docx import Document
from openpyxl import Workbook
from pptx import Presentation


def letter(*paragraphs: str, heading: str = "", rows: tuple[tuple[str, ...], ...] = ()) -> bytes:
    document = Document()
    if heading:
        document.add_heading(heading, 2)
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    if rows:
        table = document.add_table(len(rows), len(rows[0]))
        for number, row in enumerate(rows):
            for place, words in enumerate(row):
                table.cell(number, place).text = words
    return _saved(document)


def workbook(title: str, *rows: tuple[Any, ...]) -> bytes:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = title
    for row in rows:
        sheet.append(row)
    return _saved(book)


def talk(*slides: tuple[str, str], notes: str = "") -> bytes:
    presentation = Presentation()
    for title, words in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.placeholders[0].text = title
        slide.placeholders[1].text = words
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    return _saved(presentation)


def _saved(document: Any) -> bytes:
    kept = BytesIO()
    document.save(kept)
    return kept.getvalue()
