"""What a permission beyond one call may cover: a rule that is suggested, or written, in plain words.

For commands their first words, for files a folder, for addresses their host; for all else the very call.
Who may grant it, and for how long, is `actions.approvals`' and `actions.grants`' to say.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from posixpath import dirname
from typing import Any, Literal

from django.utils.translation import gettext as _

from harness.agentconfig import ToolRule
from harness.dangers import graded, takes_or_sends
from harness.errors import Invalid
from harness.modelfaults import read_as
from harness.patterns import When
from reading.commandwords import simple_command
from reading.harmless import words_to_name
from reading.hostnames import LONGEST_ADDRESS, split_address
from tools_app.touches import COMMANDS

Way = Literal["prefix", "path", "host"]


@dataclass(frozen=True, slots=True)
class Cover:
    """What of such calls a pattern can speak of."""

    argument: str
    way: Way
    pattern: str
    """The suggested one; empty where only the very call is suggested."""

    @property
    def before(self) -> str:
        """The words before the pattern, for a form."""
        return {
            "prefix": _("Commands that begin with"),
            "path": _("Paths like"),
            "host": _("Addresses at the host"),
        }[self.way]


def cover_of(tool: str, given: Mapping[str, Any]) -> Cover | None:
    """None where nothing but the very call can be allowed."""
    if tool in COMMANDS and isinstance(given.get("command"), str):
        return Cover("command", "prefix", _beginning(given, str(given["command"])))
    if isinstance(url := given.get("url"), str):
        return Cover("url", "host", _sure(given, "url", "host", _host(url)))
    if isinstance(path := given.get("path"), str) and path:
        folder = dirname(path)
        wide = _sure(given, "path", "path", f"{folder}/**") if folder.strip("/.") else ""
        return Cover("path", "path", wide or _sure(given, "path", "path", path))
    return None


def written(tool: str, given: Mapping[str, Any], pattern: str) -> When:
    """What a person wants to be covered, as a rule has it. Raises Invalid naming the field, also for
    one that does not cover this call: then she means another."""
    cover = cover_of(tool, given)
    if cover is None:
        raise Invalid(
            _("Of this tool only the very call can be allowed for longer."),
            field="pattern",
            hint=_("Leave the pattern out."),
        )
    when = read_as({"argument": cover.argument, cover.way: pattern.strip()}, When, at="pattern")
    if not when.surely(given):
        raise Invalid(
            _("“%(pattern)s” does not cover this call for certain.") % {"pattern": pattern[:100]},
            field="pattern",
            hint=_("Write what this call begins with or lies in, or allow exactly this call."),
        )
    return when


def in_words(rule: ToolRule, given: Mapping[str, Any] | None = None) -> str:
    """A rule as people read it; `given`: of the call that it was allowed with."""
    when, tool = rule.when, rule.tool
    if when is None:
        return _("every call of %(tool)s") % {"tool": tool}
    said = {"tool": tool, "argument": when.argument}
    if when.prefix is not None:
        return _("%(tool)s: commands that begin with “%(pattern)s”") % {
            **said,
            "pattern": when.prefix.strip(),
        }
    if when.path is not None:
        return _("%(tool)s: paths like “%(pattern)s”") % {**said, "pattern": when.path}
    if when.host is not None:
        return _("%(tool)s: addresses at the host “%(pattern)s”") % {**said, "pattern": when.host}
    if when.sha256 is None:
        return _("%(tool)s: %(argument)s is “%(pattern)s”") % {**said, "pattern": when.equals}
    cover = None if given is None else cover_of(tool, given)
    if cover is None or given is None:
        return _("%(tool)s: exactly one call") % said
    shown = " ".join(str(given[cover.argument]).split())
    return _("%(tool)s: exactly the call with “%(value)s”") % {**said, "value": shown[:200]}


def _beginning(given: Mapping[str, Any], command: str) -> str:
    """The fewest words behind which all others of the command are harmless, those among them by which it only
    checks or shows; none for what deletes, sends or cannot be read."""
    words = simple_command(command)
    if words is None or graded(command).marks:
        return ""
    named = words[: words_to_name(words, no_more=True) or 0]
    if not named or takes_or_sends(named):
        return ""
    return _sure(given, "command", "prefix", shlex.join(named))


def _host(url: str) -> str:
    try:
        return split_address(url).hostname or "" if len(url) <= LONGEST_ADDRESS else ""
    except ValueError:
        return ""


def _sure(given: Mapping[str, Any], argument: str, way: Way, pattern: str) -> str:
    """The pattern, if it can be one and covers this call; else nothing."""
    try:
        when = When.model_validate({"argument": argument, way: pattern})
    except ValueError:
        return ""
    return pattern if when.surely(given) else ""
