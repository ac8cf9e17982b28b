"""The form of a memory's path, as the public API has it. Where files of that name may lie is not its part."""

from __future__ import annotations

import re

from django.utils.translation import gettext as _

from harness.errors import Invalid
from reading.normalizing import normalized
from reading.unseen import first_in_name, seen_name

from .models.memory import PATH_LIMIT

SEGMENTS = 20
_OTHER = re.compile(r"[^\w.-]+")


def check_path(path: str, *, field: str = "path") -> str:
    """The path as it stands. Raises Invalid, which says what a path is."""
    segments = path.split("/")
    fault = ""
    if len(path.encode("utf-8", "replace")) > PATH_LIMIT:
        fault = _("A path has %(most)d bytes at most.") % {"most": PATH_LIMIT}
    elif not path.startswith("/") or len(segments) > SEGMENTS + 1:
        fault = _("A path begins with / and has 1 to %(most)d parts.") % {"most": SEGMENTS}
    elif any(part in {"", ".", ".."} for part in segments[1:]):
        fault = _("No part of a path is empty, “.” or “..”.")
    elif unseen := first_in_name(path):
        fault = _("A path has no character that nobody sees, such as %(sign)s.") % {"sign": unseen}
    elif not _is_normal(path):
        fault = _("A path is in Unicode's normal form C.")
    if fault:
        raise Invalid(fault, field=field, hint=_("Write it like /projects/notes.md."))
    return path


def _is_normal(path: str) -> bool:
    try:
        return normalized("NFC", path) == path
    except ValueError:
        return False


def check_prefix(prefix: str) -> str:
    """A folder: "/", or a path with a slash behind it. Raises Invalid."""
    if prefix == "/":
        return prefix
    if not prefix.endswith("/"):
        raise Invalid(
            _("It does not end with a slash."),
            field="path_prefix",
            hint=_("Write it like /projects/."),
        )
    check_path(prefix[:-1], field="path_prefix")
    return prefix


def as_part(text: str, most: int = 60) -> str:
    """Words as one part of a path: lower case, hyphens between them."""
    words = _OTHER.sub("-", seen_name(text[: 4 * most].casefold(), "-")).strip("-._")
    try:
        plain = normalized("NFC", words)
    except ValueError:
        plain = ""
    return plain[:most].strip("-._") or "memory"
