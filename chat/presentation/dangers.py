"""What makes a command dangerous, in words; the grade itself is `harness.dangers`'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from harness.dangers import Mark, graded
from tools_app.touches import COMMANDS


def danger_words(tool: str, given: Mapping[str, Any]) -> list[str]:
    """Of a call; the gravest first, none for what is no command."""
    command = given.get("command")
    if tool not in COMMANDS or not isinstance(command, str):
        return []
    return [_words(mark) for mark in graded(command).marks]


def _words(mark: Mark) -> str:
    return {
        "deletes_much": _("deletes much at once"),
        "production": _("names production"),
        "privileged": _("takes another user's rights"),
        "infrastructure": _("changes what runs elsewhere"),
        "rewrites": _("rewrites history that others have"),
        "publishes": _("publishes"),
        "runs_fetched": _("runs what it fetches"),
        "stops": _("stops programs or services"),
        "deletes": _("deletes"),
        "sends": _("sends something elsewhere"),
        "installs": _("installs software"),
        "permissions": _("changes who may read or write files"),
        "elsewhere": _("writes outside of its folder"),
        "unreadable": _("cannot be read for certain"),
    }[mark]
