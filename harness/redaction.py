"""Takes secrets out of what is shown of a model's requests: by the names of fields and by their looks.

Harmless long strings stay. A mask on the way out, not a safe: what must not leave is never put in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from reading.linear import linear, whole_characters

MASK = "[redacted]"

_TELLING_NAME = re.compile(
    r"(?i)(?:^|[_\-.])(?:api[_\-]?key|secret|password|passwd|passphrase|token|authorization|"
    r"credential|private[_\-]?key|cookie)s?$"
)
# RE2 is linear in one search. It stays so in all of a text where a beginning that is not finished ends
# with the next find at the latest: so what has parts of any length is looked for by itself.
_WEB_TOKEN = linear(r"(?i)\beyJ[a-z0-9_\-]{10,}\.[a-z0-9_\-]{10,}\.[a-z0-9_\-]{10,}")
_KEY = linear(
    r"(?i)\b(?:"
    r"sk-[a-z0-9_\-]{12,}|ags_[a-z0-9]{20,}|gh[pousr]_[a-z0-9]{20,}|github_pat_[a-z0-9_]{20,}|"
    r"xox[abprs]-[a-z0-9\-]{10,}|AKIA[0-9A-Z]{16}|AIza[0-9a-z_\-]{30,}"
    r")"
)
_PRIVATE_KEY = linear(
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)"
)
_BEARER = linear(r"(?i)\b(bearer\s+)[a-z0-9._~+/\-]{8,}=*")
_ASSIGNMENT = linear(
    r"(?i)((?:api[_\-]?key|secret|password|passwd|passphrase|token|private[_\-]?key)\\*[\"']?"
    r"\s*[:=]\s*\\*)(\"[^\"\n]{4,}\"|'[^'\n]{4,}'|[^\s\"',;]{6,})"
)
_IN_ADDRESS = linear(r"(://[^/\s:@]*:)[^@\s\"'<>]+(@)")


def redacted_text(text: str, known: Collection[str] = ()) -> str:
    """`text` without what looks like a secret, and without the `known` ones."""
    text = whole_characters(text)
    for secret in known:
        if len(secret) >= 8:
            text = text.replace(secret, MASK)
    for expression in (_PRIVATE_KEY, _WEB_TOKEN, _KEY, _BEARER, _ASSIGNMENT, _IN_ADDRESS):
        text = _masked(expression, text)
    return text


def _masked(expression: Any, text: str) -> str:
    """`text` with a mask for what is found, its first and third group left as they are."""
    parts: list[str] = []
    done = 0
    for found in expression.finditer(text if text.isascii() else text.translate(_AS_ASCII)):
        groups = expression.groups
        start = found.end(1) if groups else found.start()
        end = found.start(groups) if groups and expression is _IN_ADDRESS else found.end()
        parts += [text[done:start], MASK]
        done = end
    return "".join((*parts, text[done:]))


# One character for one, so that places stay: full-width signs, blanks and quotes of print. RE2's `\s`,
# `\b` and what we write out speak of ASCII.
_AS_ASCII = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **dict.fromkeys([0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " "),
    **dict.fromkeys([0x2028, 0x2029], "\n"),
    **dict.fromkeys([0x201C, 0x201D, 0x201E], '"'),
    **dict.fromkeys([0x2018, 0x2019, 0x201A], "'"),
    **dict.fromkeys([0x2010, 0x2011, 0x2012, 0x2013], "-"),
    0x17F: "s",
    0x212A: "K",
}
_IN_A_NAME = _AS_ASCII | dict.fromkeys(
    [0xAD, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF]
)
"""Here places do not matter: what nobody sees goes."""


def redacted(value: Any, known: Collection[str] = ()) -> Any:
    """JSON values with every text redacted, and those under telling names masked as a whole."""
    if isinstance(value, str):
        return redacted_text(value, known)
    if isinstance(value, Mapping):
        return {
            name: MASK
            if isinstance(held, str)
            and held
            and _TELLING_NAME.search(str(name).translate(_IN_A_NAME).strip())
            else redacted(held, known)
            for name, held in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(item, known) for item in value]
    return value
