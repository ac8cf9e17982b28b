"""The rules of an agent as rows of a form: tool, argument, pattern, effect, reason, and who may answer.

`static/js/admin-rules.js` adds and removes rows. Without it there is an empty row for one more, and a
row whose texts are all empty is no rule. What a row means, and what is wrong with it, is
`agents.rulerows`' part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.widgets import Script
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.rulerows import (
    BEHIND,
    FLAGS,
    LABELS,
    PERMISSIONS,
    WAYS,
    Row,
    Rule,
    empty_row,
    faults_of,
    row_of,
    rule_of,
    says_something,
)
from harness.tools import Effect
from tools_app.catalogue import all_tools

MOST_ROWS = 500
"""Of a submitted table; more is nobody's list of tools."""

EFFECTS = {
    Effect.READ: gettext_lazy("reads"),
    Effect.WORKSPACE: gettext_lazy("changes files"),
    Effect.OUTSIDE: gettext_lazy("reaches outside"),
}
NEXT = "__next__"
"""In the names of the row that the script copies."""


class ToolRulesWidget(forms.Widget):
    """Its value is a list of rules, or as sent a list of rows."""

    template_name = "admin/agents/tool_rules.html"

    @property
    def media(self) -> forms.Media:
        scripts: Any = [Script("js/admin-rules.js", type="module")]  # its stubs know paths alone
        return forms.Media(js=scripts)

    def get_context(self, name: str, value: Any, attrs: Mapping[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, dict(attrs or {}))
        rows = [
            _drawn(f"{name}-{number}", number + 1, one, show_faults=isinstance(one, Row))
            for number, one in enumerate([*(value or []), empty_row()])
        ]
        rows[-1]["faults"] = {}
        context["widget"] |= {
            "rows": rows,
            "blank": _drawn(f"{name}-{NEXT}", NEXT, empty_row()),
            "labels": LABELS,
            "permissions": PERMISSIONS,
            "ways": WAYS,
            "tools": [
                {
                    "name": tool.name,
                    "description": tool.description,
                    "effect": EFFECTS[tool.effect],
                    "feature": tool.feature.replace("_", " "),
                    "always_asks": tool.always_asks,
                }
                for tool in all_tools().values()
            ],
        }
        return context

    def value_from_datadict(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> list[Row] | None:
        """The rows that say something; None when the table was not sent at all."""
        if self.value_omitted_from_data(data, files, name):
            return None
        rows = []
        for number in range(MOST_ROWS):
            if f"{name}-{number}-tool" in data:
                row = Row({part: _text(data, f"{name}-{number}-{part}") for part in LABELS})
                row["tool"] = row["tool"].strip()
                if says_something(row):
                    rows.append(row)
        return rows

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return f"{name}-sent" not in data

    def _render(
        self, template_name: str, context: dict[str, Any], renderer: Any = None
    ) -> SafeString:
        # The project's templates are out of reach of the renderer of forms.
        return mark_safe(render_to_string(template_name, context))  # noqa: S308 - a template's


class ToolRulesField(forms.Field):
    """A list of rules, in the order of their rows."""

    widget = ToolRulesWidget

    def clean(self, value: Any) -> list[dict[str, Any]]:
        rows: list[Row] = super().clean(value) or []
        wrong = [
            ValidationError(
                _("Rule %(number)d, %(part)s: %(fault)s"),
                params={"number": number, "part": str(LABELS.get(part, part)), "fault": fault},
            )
            for number, row in enumerate(rows, start=1)
            for part, faults in faults_of(row).items()
            for fault in faults
        ]
        if wrong:
            raise ValidationError(wrong)
        return [rule_of(row) for row in rows]

    def has_changed(self, initial: Any, data: Any) -> bool:
        """A page that does not hold the table says nothing about it."""
        return data is not None and [row_of(rule) for rule in initial or ()] != list(data)


def _drawn(
    prefix: str, number: int | str, one: Rule | Row, *, show_faults: bool = False
) -> dict[str, Any]:
    row = one if isinstance(one, Row) else row_of(one)
    faults: Mapping[str, Sequence[str]] = faults_of(row) if show_faults else {}
    return {
        "prefix": prefix,
        "number": number,
        "row": row,
        "faults": faults,
        "flags": [(flag, LABELS[flag], bool(row[flag])) for flag in FLAGS],
        "is_open": any(row[part] for part in BEHIND),
        "has_lines": "\n" in row["value"],
    }


def _text(data: Mapping[str, Any], name: str) -> str:
    return str(data.get(name, "")).replace("\r\n", "\n").replace("\0", "")
