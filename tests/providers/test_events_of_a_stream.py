"""Events come out of a stream's bytes in the same way however these are split."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from providers.sse import EventData

PARTS = (
    b"data: one",
    b"data:two",
    b"data",
    b"data: \xc3\xa6\xff",
    b"event: delta",
    b": said to nobody",
    b"\n",
    b"\n\n",
    b"\r",
    b"\r\n",
    b"\r\n\r\n",
)


def fed(chunks: list[bytes]) -> list[str]:
    data = EventData()
    return [text for chunk in chunks for text in data.feed(chunk)]


@given(st.lists(st.lists(st.sampled_from(PARTS), max_size=5).map(b"".join), max_size=6))
@example([b"data: one\nevent: delta\ndata:two\n\n"])
@example([b"data: on", b"e\n\n"])
@example([b"data: one\n", b"\n\n"])
@example([b"data: one\r", b"\ndata:two\n\n"])
@example([b"data: one\r\rdata:two\n\n"])
@example([b"data: one\n\n\n\ndata:two\n\n"])
def test_where_a_stream_is_split_changes_nothing(chunks: list[bytes]):
    whole = b"".join(chunks)
    by_bytes = fed([whole[place : place + 1] for place in range(len(whole))])
    assert fed(chunks) == fed([whole]) == by_bytes
