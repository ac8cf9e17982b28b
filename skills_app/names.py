"""What a skill may be called, and which files it may hold: the same for who makes, sends or fetches one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from django.utils.translation import gettext as _

from harness.errors import Invalid
from reading.normalizing import normalized
from tools_app.confinement import parse_path, shown

NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
"""The standard's."""
NAME_LIMIT = 64
SKILL = "SKILL.md"


def name_of(text: str) -> str:
    """Raises Invalid (`name`) for what no skill may be called."""
    if len(text) > NAME_LIMIT or not NAME.fullmatch(text):
        raise Invalid(
            _("A skill’s name has 1 to %(most)d small letters, digits and single hyphens inside.")
            % {"most": NAME_LIMIT},
            field="name",
            hint=_("Write it like code-review."),
        )
    return text


def path_of(text: str) -> str:
    """A path below the skill's folder. Raises Invalid for one that leads out of it or cannot be shown."""
    if text.startswith("/") or "\\" in text or ".." in text.split("/"):
        raise _refused(text, _("It leads out of the skill’s folder."))
    parts = parse_path(text)
    if not parts:
        raise _refused(text, _("It names no file."))
    if any(_hidden(part) for part in parts):
        raise _refused(text, _("It has signs in its name that nobody sees."))
    try:
        return normalized("NFC", "/".join(parts))
    except ValueError as problem:
        raise _refused(text, _("Too many marks stand on one letter.")) from problem


def require_apart(paths: Iterable[str]) -> None:
    """Raises Invalid for two paths that some systems take for one, and for a file that is a folder too."""
    known: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        folded = normalized("NFKC", path).casefold()
        if folded in known:
            raise _refused(
                path, _("“%(other)s” is the same name elsewhere.") % {"other": known[folded]}
            )
        known[folded] = path
        parts = folded.split("/")
        for depth in range(1, len(parts)):
            folders["/".join(parts[:depth])] = path
    for folded in known.keys() & folders.keys():
        raise _refused(known[folded], _("It would be a file and a folder at once."))


def _hidden(part: str) -> bool:
    return any(
        unicodedata.category(each) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"} for each in part
    )


def _refused(path: str, why: str) -> Invalid:
    return Invalid(
        _("The file “%(path)s” cannot be part of a skill. %(why)s")
        % {"path": shown(path), "why": why},
        field="files",
        hint=_("Rename it, or leave it out."),
    )
