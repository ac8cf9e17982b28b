"""What a prompt may take at most, before any service has counted it."""

from __future__ import annotations

from collections.abc import Sequence

from harness.content import (
    Base64Source,
    Block,
    Document,
    FileSource,
    Image,
    PlainTextSource,
    UrlSource,
)
from harness.estimates import (
    MEDIA_TOKENS,
    PAGES_AT_MOST,
    prompt_tokens_at_most,
    sizes_at_most,
    unopened_tokens_at_most,
)
from harness.messages import Message, ModelRequest, Part, ToolAnswer

PDF = Base64Source(media_type="application/pdf", data="JVBERi0xLjc=")
ELSEWHERE = UrlSource(url="https://x.example/a.pdf")
UNREAD = FileSource(file_id="file_1")


def asking(*parts: Part) -> ModelRequest:
    return ModelRequest("m", "", (Message("user", parts),))


def in_answer(blocks: Sequence[Block]) -> ToolAnswer:
    return ToolAnswer("call_1", tuple(blocks))


def test_each_page_of_a_document_counts():
    one, many = (prompt_tokens_at_most(asking(Document(source=PDF, pages=n))) for n in (1, 100))
    assert many - one == 99 * MEDIA_TOKENS
    assert MEDIA_TOKENS < one < 2 * MEDIA_TOKENS


def test_a_document_whose_pages_nobody_counted_is_held_back_as_the_longest():
    for source in (PDF, ELSEWHERE, UNREAD):
        for part in (Document(source=source), in_answer([Document(source=source)])):
            assert prompt_tokens_at_most(asking(part)) >= PAGES_AT_MOST * MEDIA_TOKENS


def test_such_a_document_takes_one_page_of_the_plan():
    request = asking(Document(source=ELSEWHERE), Image(source=ELSEWHERE))
    unopened = (PAGES_AT_MOST - 1) * MEDIA_TOKENS
    assert unopened_tokens_at_most(request) == unopened
    assert sum(sizes_at_most(request).values()) == prompt_tokens_at_most(request) - unopened
    known = asking(Document(source=PDF, pages=3), Document(source=PlainTextSource(data="Words.")))
    assert unopened_tokens_at_most(known) == 0
