"""Server-sent events out of a byte stream, at linear cost.

For services whose stream is read without the SDK's typed events. Only the data matters here; names
and ids of events are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator


class EventData:
    """Fed with bytes split anywhere, gives the data of each event that is complete.

    Lines end with LF, CRLF or CR in any mixture. An event that the stream's end cuts off is never
    given. Bytes that are no UTF-8 become replacement characters.
    """

    def __init__(self) -> None:
        self._data: list[str] = []
        self._line: list[bytes] = []
        self._after_return = False

    def feed(self, chunk: bytes) -> Iterator[str]:
        for line in self._lines(chunk):
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" ").decode("utf-8", "replace"))
            elif not line and self._data:
                yield "\n".join(self._data)
                self._data = []

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
            if len(bare) != len(line):
                yield b"".join(self._line)
                self._line = []
