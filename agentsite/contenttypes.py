"""What a request may say of the coding of its body and of its own header: UTF-8, or nothing.

Django and the framework of `/v1` and `/api` decode by whatever name of Python's a client gives: some raise,
some are slow, some make halves of characters that no table holds. So no such request goes in.
"""

from __future__ import annotations

from collections.abc import Iterable

from agentsite.refusals import OTHER_CODING, Refusal

_TAKEN = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})
"""As written in small letters. All are UTF-8."""
_DECODED = ("application/x-www-form-urlencoded", "application/json", "multipart/")
"""Kinds of bodies that are texts to whoever reads them; other bodies are bytes here."""
_HARMLESS = frozenset({"iso-8859-1", "iso-8859-15", "latin1", "latin-1", "windows-1252"})
"""What others may be in besides: by a charset Django reads the address's query as well, and each text is one
in these."""


def refusal_of(headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
    """Names of headers in lower case."""
    for name, value in headers:
        if name == b"content-type" and not _is_taken(value.decode("latin-1")):
            return OTHER_CODING
    return None


def _is_taken(content_type: str) -> bool:
    """Where a quoted value holds a semicolon more parameters are seen than there are, never fewer."""
    kind, *parameters = content_type.split(";")
    decoded = kind.strip().lower().startswith(_DECODED)
    taken = _TAKEN if decoded else _TAKEN | _HARMLESS
    for each in parameters:
        name, _equals, value = each.partition("=")
        coding = value.strip().strip('"').strip().lower()
        if "*" in name or (name.strip().lower() == "charset" and coding not in taken):
            return False
    return True
