"""Which pictures and documents are kept for a model: those that it can open, and no others."""

from __future__ import annotations

import pytest

from harness.content import Base64Source, Block, Document, Image, PlainTextSource, Text, UrlSource
from tests.pictures import BROKEN, GOOD, bomb, coded, paper, photograph, picture
from tools_app import isolation
from tools_app.media import TEXT_CHARACTERS, faults, first_fault, readable, with_pages


def image(data: str, kind: str = "image/png") -> Image:
    return Image(source=Base64Source(media_type=kind, data=data))


def document(data: str, kind: str = "application/pdf") -> Document:
    return Document(source=Base64Source(media_type=kind, data=data))


GOOD_BLOCKS: list[Block] = [
    Text(text="Look:"),
    *(
        image(coded(picture(form)), f"image/{form.lower()}")
        for form in ("PNG", "JPEG", "GIF", "WEBP")
    ),
    image(coded(photograph()), "image/jpeg"),
    document(coded(paper())),
    Document(source=PlainTextSource(data="Words.")),
    Image(source=UrlSource(url="https://example.org/a.png")),
]


def test_what_model_services_take_is_taken():
    assert first_fault(GOOD_BLOCKS, who="alice") is None
    assert readable(tuple(GOOD_BLOCKS)) == with_pages(GOOD_BLOCKS)


def test_documents_that_were_opened_say_how_many_pages_they_have_and_no_others():
    opened = document(coded(paper(7)))
    elsewhere = Document(source=UrlSource(url="https://example.org/a.pdf"), pages=1)
    assert first_fault([opened], who="alice") is None
    pages = [getattr(block, "pages", None) for block in with_pages([opened, elsewhere])]
    assert pages == [7, None]
    assert readable((opened, elsewhere)) == with_pages([opened, elsewhere])
    assert [block for block in with_pages(GOOD_BLOCKS) if isinstance(block, Image)] == [
        block for block in GOOD_BLOCKS if isinstance(block, Image)
    ]


@pytest.mark.parametrize(
    ("block", "field", "words"),
    [
        (image("aGk="), "source.data", "cannot be decoded"),
        (image(BROKEN), "source.data", "cannot be decoded"),
        (image(coded(picture("JPEG")[:-100]), "image/jpeg"), "source.data", "cannot be decoded"),
        (image(coded(picture("JPEG"))), "source.data", "it is image/jpeg and was called image/png"),
        (image(coded(picture("BMP")), "image/bmp"), "source.media_type", "image/bmp"),
        (image(coded(picture("BMP"))), "source.data", "cannot be decoded"),
        (image(coded(b"<svg/>"), "image/svg+xml"), "source.media_type", "image/svg+xml"),
        (image("not base64!"), "source.data", "base64"),
        (image("ä"), "source.data", "base64"),
        (image(""), "source.data", "empty"),
        (image(coded(bomb(60_000))), "source.data", "60000 × 60000 pixels"),
        (document(coded(b"%PDF-1.7 nothing")), "source.data", "cannot be read as a PDF"),
        (document(coded(paper(password="x"))), "source.data", "password"),
        (document(coded(paper(101))), "source.data", "101 pages"),
        (document(coded(b"Words."), "text/plain"), "source.media_type", "text/plain"),
        (
            Document(source=PlainTextSource(data="x" * (TEXT_CHARACTERS + 1))),
            "source.data",
            "1,000,001 characters",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_model_service_could_open_is_named_with_its_remedy(block, field, words):
    fault = first_fault([Text(text="Look:"), block], who="alice")
    assert fault is not None
    assert (fault.place, fault.field) == (1, field)
    assert words in fault.message
    assert fault.hint
    (told,) = readable((block,))
    assert isinstance(told, Text)
    assert words in told.text


def test_a_document_of_text_is_taken_up_to_its_limit():
    assert (
        first_fault([Document(source=PlainTextSource(data="x" * TEXT_CHARACTERS))], who="alice")
        is None
    )


def test_at_the_limits_it_is_taken_and_one_past_them_refused(settings):
    settings.AGENTSITE_IMAGE_PIXELS = 8
    settings.AGENTSITE_PDF_PAGES = 2
    assert first_fault([image(GOOD), document(coded(paper(2)))], who="alice") is None
    assert first_fault([image(coded(picture(side=9)))], who="alice") is not None
    assert first_fault([document(coded(paper(3)))], who="alice") is not None
    settings.AGENTSITE_IMAGE_BYTES = len(picture())
    assert first_fault([image(GOOD)], who="alice") is None
    settings.AGENTSITE_IMAGE_BYTES -= 1
    assert "bytes; at most" in faults([image(GOOD)])[0].message


def test_a_file_that_hangs_its_reader_is_refused_in_time(settings, tmp_path, monkeypatch):
    (tmp_path / "media.py").write_text("while True: pass")
    monkeypatch.setattr(isolation, "_SCRIPTS", tmp_path)
    settings.AGENTSITE_MEDIA_SECONDS = 1
    fault = first_fault([image(coded(picture(side=31)))], who="alice")
    assert fault is not None
    assert "1 seconds" in fault.message


def test_a_file_that_kills_its_reader_is_refused(tmp_path, monkeypatch):
    (tmp_path / "media.py").write_text("import sys; sys.stdin.readline(); bytearray(8 * 1024**3)")
    monkeypatch.setattr(isolation, "_SCRIPTS", tmp_path)
    assert first_fault([image(coded(picture(side=33)))], who="alice") is not None


def test_what_is_sent_together_has_no_more_pixels_than_the_limit_whether_known_or_new(settings):
    settings.AGENTSITE_MESSAGE_PIXELS = 2 * 8 * 8
    sent = [image(coded(picture(form)), f"image/{form.lower()}") for form in ("PNG", "GIF", "WEBP")]
    assert first_fault(sent[:2], who="alice") is None
    for _time in range(2):  # by then the third has been seen
        fault = first_fault(sent, who="alice")
        assert fault is not None
        assert (fault.place, fault.field) == (2, "source.data")
        assert "more than 128 pixels" in fault.message
        assert first_fault(sent[2:], who="alice") is None
    settings.AGENTSITE_MESSAGE_PIXELS = 8 * 8 - 1
    large = image(coded(picture("JPEG", side=45)), "image/jpeg")
    assert "more than 63 pixels" in faults([large])[0].message


def test_more_files_than_any_service_takes_in_one_request_are_refused_unopened(monkeypatch):
    monkeypatch.setattr("tools_app.media.TOGETHER", 2)
    fault = first_fault([image(coded(picture(side=41)))] * 3, who="alice")
    assert fault is not None
    assert fault.place == 2
    assert "More than 2" in fault.message


def test_a_good_file_is_opened_once(tmp_path, monkeypatch):
    block = image(coded(picture(side=35)))
    assert first_fault([block], who="alice") is None
    monkeypatch.setattr(isolation, "_SCRIPTS", tmp_path)  # nothing could be opened any more
    assert first_fault([block], who="alice") is None
