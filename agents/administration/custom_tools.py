"""The custom tools of an agent as a table: name, what the model is told, and the schema of the input.

Works without a script: the last rows are empty, and saving brings fresh ones.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from harness.agentconfig import MOST_CUSTOM_TOOLS
from reading.foreignjson import Unreadable, read_json

FREE_ROWS = 2
"""Empty rows for more tools."""
EMPTY_SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}

Row = dict[str, Any]
"""`name`, `description` and `input_schema`: a value, or as sent the text that was typed."""


class CustomToolsWidget(forms.Widget):
    template_name = "admin/agents/custom_tools.html"

    def get_context(self, name: str, value: Any, attrs: Mapping[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, dict(attrs or {}))
        rows = [{**row, "input_schema": as_text(row["input_schema"])} for row in value or []]
        rows += [{"name": "", "description": "", "input_schema": ""} for _row in range(FREE_ROWS)]
        context["widget"]["rows"] = [
            {"prefix": f"{name}-{number}", **row} for number, row in enumerate(rows)
        ]
        return context

    def value_from_datadict(
        self, data: Mapping[str, Any], files: Any, name: str
    ) -> list[Row] | None:
        """The rows that say something; None when the table was not sent at all."""
        if f"{name}-0-name" not in data:
            return None
        rows = []
        for number in range(MOST_CUSTOM_TOOLS + FREE_ROWS):
            tool = data.get(f"{name}-{number}-name")
            if tool is None:
                break
            description = data.get(f"{name}-{number}-description", "")
            schema = data.get(f"{name}-{number}-schema", "")
            if tool.strip() or description.strip() or schema.strip():
                rows.append(
                    {
                        "name": tool.strip(),
                        "description": description.replace("\r\n", "\n").replace("\0", "").strip(),
                        "input_schema": schema,
                    }
                )
        return rows

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return f"{name}-0-name" not in data

    def _render(
        self, template_name: str, context: dict[str, Any], renderer: Any = None
    ) -> SafeString:
        # The project's templates are out of reach of the renderer of forms.
        return mark_safe(render_to_string(template_name, context))  # noqa: S308 - a template's


class CustomToolsField(forms.Field):
    """A list of custom tools, as plain data; what may be in one is judged by `AgentConfig`."""

    widget = CustomToolsWidget

    def clean(self, value: Any) -> list[Row]:
        rows: list[Row] = super().clean(value) or []
        return [{**row, "input_schema": _schema_of(row)} for row in rows]

    def has_changed(self, initial: Any, data: Any) -> bool:
        if data is None:
            return False  # a page that does not hold the table says nothing about it
        try:
            return list(initial or []) != self.clean(data)
        except ValidationError:
            return True


def as_text(schema: Any) -> str:
    return schema if isinstance(schema, str) else json.dumps(schema, indent=2, ensure_ascii=False)


def _schema_of(row: Row) -> Any:
    text = row["input_schema"].strip()
    if not text:
        return EMPTY_SCHEMA
    try:
        return read_json(text)
    except Unreadable as problem:
        raise ValidationError(
            _("The input schema of “%(tool)s” is not valid JSON: %(problem)s."),
            params={"tool": row["name"], "problem": str(problem)[:200]},
        ) from None
