"""Server-sent events out of a byte stream, at linear cost.

For services whose stream is read without the SDK's typed events. Only the data matters here; names
and ids of events are passed over. What a reply's own texts may come to is `held`'s to say.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.errors import BadReply

MOST_OF_EVENT = 4 * 1024 * 1024
"""Bytes of one event, which is parsed in one go."""
MOST_OF_STREAM = 64 * 1024 * 1024
"""Of all of them: more than the longest reply takes, told in the smallest pieces."""


class EventData:
    """Fed with bytes split anywhere, gives the data of each event that is complete.

    Lines end with LF, CRLF or CR in any mixture. An event that the stream's end cuts off is never
    given. Bytes that are no UTF-8 become replacement characters. Raises `BadReply` past its bounds.
    """

    def __init__(self) -> None:
        self._data: list[str] = []
        self._line: list[bytes] = []
        self._after_return = False
        self._of_event = 0
        self._in_all = 0

    def feed(self, chunk: bytes) -> Iterator[str]:
        self._in_all += len(chunk)
        if self._in_all > MOST_OF_STREAM:
            raise _too_large("it does not end")
        if self._holds_whole_events(chunk):
            for lines in chunk.split(b"\n\n"):
                data = [_text(line) for line in lines.split(b"\n") if line.startswith(b"data:")]
                if data:
                    yield data[0] if len(data) == 1 else "\n".join(data)
            return
        for line in self._lines(chunk):
            if line.startswith(b"data:"):
                self._data.append(_text(line))
            elif not line:
                self._of_event = 0
                if self._data:
                    yield "\n".join(self._data)
                    self._data = []

    def _holds_whole_events(self, chunk: bytes) -> bool:
        """Nearly all do, and are read for a third of what splitting any mixture takes."""
        return (
            not self._of_event
            and not self._after_return
            and chunk.endswith(b"\n\n")
            and b"\r" not in chunk
            and len(chunk) <= MOST_OF_EVENT
        )

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        if self._after_return and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_return = False
        if not chunk:
            return
        self._after_return = chunk.endswith(b"\r")
        # bytes.splitlines knows only the three line ends of the format, unlike str.splitlines
        for line in chunk.splitlines(keepends=True):
            bare = line.rstrip(b"\r\n")
            self._line.append(bare)
            self._of_event += len(bare)
            if self._of_event > MOST_OF_EVENT:
                raise _too_large("one part of it is longer than any may be")
            if len(bare) != len(line):
                yield b"".join(self._line)
                self._line = []


def _text(line: bytes) -> str:
    return line[5:].removeprefix(b" ").decode("utf-8", "replace")


def _too_large(why: str) -> BadReply:
    return BadReply(
        f"The model service sent a reply that cannot be taken: {why}.",
        hint="What had arrived is kept. Ask whoever runs the model service.",
    )
