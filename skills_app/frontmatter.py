"""The head of a `SKILL.md`: YAML between two lines of three hyphens, read as the standard's guide for
clients says. What the fields mean is `folder`'s part.
"""

from __future__ import annotations

from typing import Any

import yaml
from django.utils.translation import gettext as _

from harness.errors import Invalid
from reading.foreignyaml import read_yaml

LIMIT = 20_000
"""Characters of a head."""
MOST_BRACKETS = 200
FENCE = "---"


def read(text: str) -> tuple[dict[str, Any], str, bool]:
    """The fields, what stands below them, and whether a value had to be put in quotes to be read.

    Raises Invalid for a text without a head and for one that cannot be read.
    """
    lines = text.lstrip("\ufeff").replace("\r\n", "\n").split("\n")
    end = _end(lines)
    head, body = "\n".join(lines[1:end]), "\n".join(lines[end + 1 :]).strip("\n")
    if len(head) > LIMIT:
        raise _unreadable(_("It is longer than %(most)d characters.") % {"most": LIMIT})
    try:
        return fields_of(head), body, False
    except yaml.YAMLError as problem:
        try:
            return fields_of(_quoted(head)), body, True
        except yaml.YAMLError:
            raise _unreadable(_where(problem)) from problem


def _end(lines: list[str]) -> int:
    if lines[0].strip() == FENCE:
        for number, line in enumerate(lines[1:], start=1):
            if line.rstrip() == FENCE:
                return number
    raise Invalid(
        _("SKILL.md has no head."),
        field="SKILL.md",
        hint=_("Begin it with a line of three hyphens, name: and description:, and three hyphens."),
    )


def fields_of(head: str) -> dict[str, Any]:
    """The fields of a YAML text. Raises `YAMLError`, also for what would take too long."""
    if head.count("{") + head.count("[") > MOST_BRACKETS:
        raise yaml.YAMLError(_("It opens more than %(most)d brackets.") % {"most": MOST_BRACKETS})
    found = read_yaml(head)
    if not isinstance(found, dict):
        raise yaml.YAMLError("it is no list of fields")
    return {str(key): value for key, value in found.items()}


def _quoted(head: str) -> str:
    """With values in quotes that hold a colon, which many authors forget."""
    return "\n".join(_quoted_line(line) for line in head.split("\n"))


def _quoted_line(line: str) -> str:
    name, colon, value = line.partition(":")
    value = value.strip()
    plain = value and value[0] not in "\"'[{|>&*!%@`#"
    if not colon or not plain or name != name.strip() or not name or ": " not in f"{value} ":
        return line
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'{name}: "{escaped}"'


def _where(problem: yaml.YAMLError) -> str:
    mark = getattr(problem, "problem_mark", None)
    what = getattr(problem, "problem", None) or str(problem)
    if mark is None:
        return str(what)
    return _("Line %(line)d: %(what)s.") % {"line": mark.line + 2, "what": what}


def _unreadable(why: str) -> Invalid:
    return Invalid(
        _("The head of SKILL.md cannot be read. %(why)s") % {"why": why},
        field="SKILL.md",
        hint=_("Write each field as “name: value”, and put values with signs in quotes."),
    )
