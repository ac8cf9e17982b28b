"""The tools of an agent as a table: a row for each known tool, and rows for patterns.

Works without a script: the last rows are empty, and saving brings fresh ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from harness.foreignjson import Unreadable, read_json
from harness.tools import Effect, Tool
from tools_app.catalogue import all_tools

FREE_ROWS = 3
"""Empty rows for more patterns."""
MOST_ROWS = 500
"""Of a submitted table; more is nobody's list of tools."""

PERMISSIONS = [
    ("", _("no rule of its own")),
    ("always_allow", _("allow")),
    ("always_ask", _("ask first")),
    ("always_deny", _("deny")),
]
EFFECTS = {
    Effect.READ: _("reads"),
    Effect.WORKSPACE: _("changes files"),
    Effect.OUTSIDE: _("reaches outside"),
}

Rule = dict[str, Any]
"""`tool`, a name or pattern, `permission`, and where they say something `when` and `options`. What was
typed for those two and is no JSON object stands under `more`, until the field refuses it."""
PLAIN = {"tool", "permission"}


class ToolRulesWidget(forms.Widget):
    template_name = "admin/agents/tool_rules.html"

    def get_context(self, name: str, value: Any, attrs: Mapping[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, dict(attrs or {}))
        known, free = rows_for(value or [])
        numbered = [
            {"prefix": f"{name}-{number}", **row} for number, row in enumerate([*known, *free])
        ]
        context["widget"] |= {
            "known": numbered[: len(known)],
            "free": numbered[len(known) :],
            "permissions": PERMISSIONS,
        }
        return context

    def value_from_datadict(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> list[Rule] | None:
        """The rows that say something; None when the table was not sent at all."""
        if f"{name}-0-tool" not in data:
            return None
        rules = []
        for number in range(MOST_ROWS):
            tool = data.get(f"{name}-{number}-tool")
            if tool is None:
                break
            permission = data.get(f"{name}-{number}-permission", "")
            if tool.strip() and permission:
                more = _parsed(data.get(f"{name}-{number}-more", ""))
                rules.append({"tool": tool.strip(), "permission": permission, **more})
        return rules

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return f"{name}-0-tool" not in data

    def _render(
        self, template_name: str, context: dict[str, Any], renderer: Any = None
    ) -> SafeString:
        # The project's templates are out of reach of the renderer of forms.
        return mark_safe(render_to_string(template_name, context))  # noqa: S308 - a template's


class ToolRulesField(forms.Field):
    """A list of rules. An order that alone differs from the first value is no change."""

    widget = ToolRulesWidget

    def clean(self, value: Any) -> list[Rule]:
        rules: list[Rule] = super().clean(value) or []
        for rule in rules:
            if "more" in rule:
                raise ValidationError(
                    _(
                        "What stands behind %(tool)s is not a JSON object with “when” and “options”."
                    ),
                    params={"tool": rule["tool"]},
                )
        return rules

    def has_changed(self, initial: Any, data: Any) -> bool:
        return _in_order(initial or []) != _in_order(data or [])


def rows_for(rules: Sequence[Rule]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of the known tools, in the catalogue's order, and rows of everything else."""
    rest = list(rules)
    known = []
    for tool in all_tools().values():
        rule = next((one for one in rest if one["tool"] == tool.name and one.keys() == PLAIN), None)
        if rule is not None:
            rest.remove(rule)
        known.append(_known_row(tool, rule["permission"] if rule else ""))
    free = [{**rule, "more": _typed(rule)} for rule in rest]
    free += [{"tool": "", "permission": "", "more": ""} for _number in range(FREE_ROWS)]
    return known, free


def _known_row(tool: Tool, permission: str) -> dict[str, Any]:
    return {
        "tool": tool.name,
        "permission": permission,
        "description": tool.description,
        "effect": EFFECTS[tool.effect],
        "feature": tool.feature.replace("_", " "),
        "always_asks": tool.always_asks,
    }


def _typed(rule: Rule) -> str:
    """`when` and `options` as text; what could not be read stays as it was typed."""
    if "more" in rule:
        return str(rule["more"])
    more = {name: value for name, value in rule.items() if name not in PLAIN}
    return json.dumps(more, ensure_ascii=False) if more else ""


def _parsed(text: str) -> Rule:
    if not text.strip():
        return {}
    try:
        more = read_json(text)
    except Unreadable:
        return {"more": text}
    known = isinstance(more, dict) and more.keys() <= {"when", "options", "apart"}
    return more if known else {"more": text}


def _in_order(rules: Sequence[Rule]) -> list[tuple[str, str, str]]:
    return sorted((rule["tool"], rule["permission"], _typed(rule)) for rule in rules)
