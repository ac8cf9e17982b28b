"""A rule for tools as a row of texts, as a form holds it, and back without loss.

Whether a rule may be as it is, `harness.agentconfig.ToolRule` judges; here its faults find the part of
the row that they belong to. Widgets are the admin's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import ValidationError

from agents.faultwords import words_of
from harness.agentconfig import ToolRule
from reading.digits import number_of
from reading.foreignjson import Unreadable, read_json

Rule = Mapping[str, Any]
"""As `ToolRule` dumps itself without its defaults: `tool`, `permission` and where they say something
`when`, `options`, `apart` and `note`."""


class Row(dict[str, str]):
    """Every part of `LABELS`, as it was typed; a switch that is on says `on`."""


FLAGS = ("two_people", "requester_may_not_decide", "reviewers_only", "strict", "apart")
LABELS = {
    "tool": gettext_lazy("Tool or pattern"),
    "permission": gettext_lazy("What it does"),
    "argument": gettext_lazy("Only when the argument"),
    "way": gettext_lazy("is"),
    "value": gettext_lazy("Value"),
    "note": gettext_lazy("Why it is there"),
    "ask_first": gettext_lazy("Who is asked first"),
    "expires_seconds": gettext_lazy("Seconds after which it is denied"),
    "service_accounts": gettext_lazy("Service accounts that may answer"),
    "two_people": gettext_lazy("Two different people must agree"),
    "requester_may_not_decide": gettext_lazy("Not the person the agent works for decides"),
    "reviewers_only": gettext_lazy("Reviewers only"),
    "strict": gettext_lazy("Every call is asked for anew"),
    "apart": gettext_lazy("Holds as written, whatever rules say of tools whose work it could do"),
}
PERMISSIONS = {
    "always_allow": gettext_lazy("allow"),
    "always_ask": gettext_lazy("ask first"),
    "always_deny": gettext_lazy("deny"),
}
LITERAL = "is"
"""The way of `equals` where the value is a number, true or false, and no text."""
WAYS = {
    "": gettext_lazy("anything (every call)"),
    "prefix": gettext_lazy("a command that begins with"),
    "path": gettext_lazy("a path like"),
    "host": gettext_lazy("an address at the host"),
    "equals": gettext_lazy("exactly the text"),
    LITERAL: gettext_lazy("exactly the number, true or false"),
    "sha256": gettext_lazy("(all of them) exactly, by SHA-256"),
}
BEHIND = ("ask_first", "expires_seconds", "service_accounts", *FLAGS)
"""Parts that stand in a fold, because most rules say nothing there."""


def empty_row() -> Row:
    return Row(dict.fromkeys(LABELS, "") | {"permission": "always_ask"})


def says_something(row: Row) -> bool:
    return any(row[part].strip() for part in LABELS if part not in {"permission", "way"})


def row_of(rule: Rule) -> Row:
    row = empty_row()
    row |= {"tool": rule["tool"], "permission": rule["permission"], "note": rule.get("note", "")}
    when = dict(rule.get("when") or {})
    row["argument"] = when.pop("argument", "")
    for way, value in when.items():
        is_literal = way == "equals" and not isinstance(value, str)
        row["way"] = LITERAL if is_literal else way
        row["value"] = json.dumps(value) if is_literal else str(value)
    options = dict(rule.get("options") or {}) | {"apart": rule.get("apart", False)}
    row |= {flag: "on" for flag in FLAGS if options.get(flag)}
    row["ask_first"] = options.get("ask_first", "")
    expires = options.get("expires_seconds")
    row["expires_seconds"] = "" if expires is None else str(expires)
    row["service_accounts"] = " ".join(options.get("service_accounts") or ())
    return row


def rule_of(row: Row) -> dict[str, Any]:
    """The rule; of a row that `faults_of` finds nothing wrong with."""
    rule: dict[str, Any] = {"tool": row["tool"], "permission": row["permission"]}
    if way := row["way"]:
        value = read_json(row["value"]) if way == LITERAL else row["value"]
        when = {"equals" if way == LITERAL else way: value}
        rule["when"] = {"argument": row["argument"], **when} if row["argument"] else when
    options: dict[str, Any] = {flag: True for flag in FLAGS if row[flag] and flag != "apart"}
    if row["ask_first"]:
        options["ask_first"] = row["ask_first"]
    if row["expires_seconds"].strip():
        options["expires_seconds"] = int(row["expires_seconds"])
    if accounts := row["service_accounts"].replace(",", " ").split():
        options["service_accounts"] = accounts
    if options:
        rule["options"] = options
    if row["apart"]:
        rule["apart"] = True
    if row["note"]:
        rule["note"] = row["note"]
    return rule


def faults_of(row: Row) -> dict[str, list[str]]:
    """What is wrong, by the part of the row; each says what to do."""
    found = _faults_of_texts(row)
    if found:
        return found
    try:
        ToolRule.model_validate(rule_of(row))
    except ValidationError as problem:
        for error in problem.errors():
            found.setdefault(_part_of(error["loc"]), []).append(words_of(error))
    return found


def _faults_of_texts(row: Row) -> dict[str, list[str]]:
    """What a rule cannot be made of at all."""
    found: dict[str, list[str]] = {}
    way = row["way"]
    if not row["tool"]:
        found["tool"] = [_("Name a tool, or a pattern such as mcp__*.")]
    if way not in WAYS:
        found["way"] = [_("Choose one of the ways.")]
    elif not way and (row["argument"] or row["value"]):
        found["way"] = [_("Say how the argument must be, or leave it and the value empty.")]
    elif way == "sha256" and row["argument"]:
        found["argument"] = [_("Leave it empty: such a rule speaks of all arguments.")]
    elif way and way != "sha256" and not row["argument"]:
        found["argument"] = [_("Name the argument that is meant, such as command, path or url.")]
    if way == LITERAL and not _is_literal(row["value"]):
        found["value"] = [_("Type a number, true or false; for a text choose the other way.")]
    elif way and way not in {"equals", LITERAL} and not row["value"].strip():
        found["value"] = [_("Type what the argument is compared with.")]
    seconds = row["expires_seconds"].strip()
    if seconds and number_of(seconds, most=99_999_999_999) is None:
        found["expires_seconds"] = [_("Type a whole number, or leave it empty to wait for ever.")]
    return found


def _is_literal(text: str) -> bool:
    try:
        return isinstance(read_json(text), int | float)
    except Unreadable:
        return False


def _part_of(place: Sequence[int | str]) -> str:
    group, *rest = map(str, place)
    if group == "when":
        return "argument" if rest[:1] == ["argument"] else "value"
    return rest[0] if group == "options" and rest and rest[0] in LABELS else group
