"""Takes secrets out of what is shown of a model's requests: by the names of fields and by their looks.

Harmless long strings stay. A mask on the way out, not a safe: what must not leave is never put in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

MASK = "[redacted]"

_TELLING_NAME = re.compile(
    r"(?i)(?:^|[_\-.])(?:api[_\-]?key|secret|password|passwd|passphrase|token|authorization|"
    r"credential|private[_\-]?key|cookie)s?$"
)
_LOOKS = re.compile(
    r"(?i)\b(?:"
    r"sk-[a-z0-9_\-]{12,}|ags_[a-z0-9]{20,}|gh[pousr]_[a-z0-9]{20,}|github_pat_[a-z0-9_]{20,}|"
    r"xox[abprs]-[a-z0-9\-]{10,}|AKIA[0-9A-Z]{16}|AIza[0-9a-z_\-]{30,}|"
    r"eyJ[a-z0-9_\-]{10,}\.[a-z0-9_\-]{10,}\.[a-z0-9_\-]{10,}"
    r")"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
_BEARER = re.compile(r"(?i)\b(bearer\s+)[a-z0-9._~+/\-]{8,}=*")
_ASSIGNMENT = re.compile(
    r"(?i)\b([a-z0-9_\-]*(?:api[_\-]?key|secret|password|passwd|token|private[_\-]?key)[\"']?"
    r"\s*[:=]\s*)(\"[^\"\n]{4,}\"|'[^'\n]{4,}'|[^\s\"',;]{6,})"
)
_IN_ADDRESS = re.compile(r"(://[^/\s:@]*:)[^@\s/]+(?=@)")


def redacted_text(text: str, known: Collection[str] = ()) -> str:
    """`text` without what looks like a secret, and without the `known` ones."""
    for secret in known:
        if len(secret) >= 8:
            text = text.replace(secret, MASK)
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _LOOKS.sub(MASK, text)
    text = _BEARER.sub(rf"\g<1>{MASK}", text)
    text = _ASSIGNMENT.sub(rf"\g<1>{MASK}", text)
    return _IN_ADDRESS.sub(rf"\g<1>{MASK}", text)


def redacted(value: Any, known: Collection[str] = ()) -> Any:
    """JSON values with every text redacted, and those under telling names masked as a whole."""
    if isinstance(value, str):
        return redacted_text(value, known)
    if isinstance(value, Mapping):
        return {
            name: MASK
            if isinstance(held, str) and held and _TELLING_NAME.search(str(name))
            else redacted(held, known)
            for name, held in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(item, known) for item in value]
    return value
