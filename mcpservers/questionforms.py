"""The form by which a person answers what a server asked: its fields, and what she typed as the server's
schema has it.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .elicitation import LONGEST, Asked, Field

_FORMATS: dict[str, type[forms.Widget]] = {
    "date": forms.DateInput,
    "email": forms.EmailInput,
    "uri": forms.URLInput,
}


class AskedForm(OurForm):
    """Of one question. `content` is what goes to the server, once the form is valid."""

    def __init__(self, asked: Asked, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked = asked
        self._names = {f"f{number}": each for number, each in enumerate(asked.fields)}
        fields: Any = self.fields
        for name, each in self._names.items():
            fields[name] = _form_field(each)

    def content(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, each in self._names.items():
            value = self.cleaned_data.get(name)
            if each.kind == "boolean":
                found[each.name] = bool(value)
            elif value not in (None, "", []):
                found[each.name] = value
        return found


def _form_field(each: Field) -> forms.Field:
    common: dict[str, Any] = {
        "label": each.title,
        "help_text": each.help,
        "required": each.required,
    }
    match each.kind:
        case "boolean":
            common["required"] = False
            return forms.BooleanField(initial=each.default is True, **common)
        case "integer":
            return forms.IntegerField(initial=_number(each.default), **common)
        case "number":
            return forms.FloatField(initial=_number(each.default), **common)
        case "choice":
            known = [value for value, _label in each.choices]
            given = each.default if each.default in known else None
            choices = [*([] if each.required else [("", _("No answer"))]), *each.choices]
            return forms.ChoiceField(choices=choices, initial=given, **common)
        case "choices":
            chosen = each.default if isinstance(each.default, list) else []
            return forms.MultipleChoiceField(
                choices=each.choices,
                initial=[value for value in chosen if isinstance(value, str)],
                widget=forms.CheckboxSelectMultiple,
                **common,
            )
        case _:
            widget = _FORMATS.get(each.format, forms.TextInput)
            kind = {"type": "date"} if each.format == "date" else {}
            text = each.default if isinstance(each.default, str) else ""
            return forms.CharField(
                max_length=LONGEST,
                initial=text[:LONGEST],
                widget=widget(attrs={"autocomplete": "off", **kind}),
                **common,
            )


def _number(value: Any) -> float | int | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
