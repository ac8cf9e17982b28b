"""Bytes of a file as text and back without changing what was not touched.

Recognises UTF-8, UTF-16 and UTF-32 by their marks, plain UTF-8, and Windows-1252; everything else
is binary. Also names a file's language. Reading the bytes is the workspace's affair.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import PurePosixPath

from pygments.lexers import find_lexer_class_for_filename

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with UTF-16's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BINARY_BYTES = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
"""Control bytes that no text file has; tab, line ends, form feed and escape are left out."""


@dataclass(frozen=True, slots=True)
class TextFile:
    """The text of a file with what is needed to write it back the same way."""

    text: str
    encoding: str
    mark: bytes = b""

    def encode(self, text: str) -> bytes:
        """`text` as this file is written. Raises `UnicodeEncodeError`."""
        return self.mark + text.encode(self.encoding)


def decode(data: bytes, *, complete: bool = True) -> TextFile | None:
    """The text of `data`, or None if it is binary.

    `complete=False`: `data` is the beginning of a file and may end inside a character.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], encoding, mark, complete=complete)
    found = None if b"\0" in data else _decoded(data, "utf-8", b"", complete=complete)
    if found is not None or _BINARY_BYTES.search(data):
        return found
    return _decoded(data, "cp1252", b"", complete=complete)


def _decoded(data: bytes, encoding: str, mark: bytes, *, complete: bool) -> TextFile | None:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(data, final=complete)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else TextFile(text, encoding, mark)


def lines_of(text: str) -> list[str]:
    """The lines as an editor counts them, without their ends; a final end starts no new line."""
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines


def language_of(path: str) -> str:
    """Pygments' short name for the language of a file with this name; `text` if it knows none."""
    lexer = find_lexer_class_for_filename(PurePosixPath(path).name)
    return str(lexer.aliases[0]) if lexer is not None and lexer.aliases else "text"


def find_first(text: str, wanted: str, most: int = 2) -> list[int]:
    """The first offsets at which `wanted` stands, overlapping ones too; line ends compare as equal.

    In a text that repeats itself each one costs as much as comparing the whole: so few are looked for.
    """
    text, wanted = _with_plain_ends(text), _with_plain_ends(wanted)
    offsets: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(offsets) < most:
        offsets.append(at)
        at = text.find(wanted, at + 1)
    return offsets


def replace_at(text: str, at: int, old: str, new: str) -> str:
    """`text` with `old`, found at `at` by `find_first`, replaced literally by `new`.

    The rest stays byte for byte; line ends of `new` become those that the text mostly has.
    """
    carriage_returns = [match.start() - n for n, match in enumerate(re.finditer("\r\n", text))]
    start = at + bisect_left(carriage_returns, at)
    end = at + len(_with_plain_ends(old))
    end += bisect_left(carriage_returns, end)
    new = _with_plain_ends(new)
    if len(carriage_returns) * 2 > text.count("\n"):
        new = new.replace("\n", "\r\n")
    return text[:start] + new + text[end:]


def _with_plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n")
