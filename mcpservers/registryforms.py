"""The form that a way to have a registry's server makes: a field for each of its questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .actions.registry import short_name
from .forms import Secret
from .models import McpServer
from .serverjson import Question, ServerJson, Way


class WayForm(OurForm):
    called = forms.CharField(
        label=_("Name"),
        help_text=_("Small letters, digits and hyphens. Rules address its tools as mcp:name:tool."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    scope = forms.ChoiceField(label=_("Whose it is"), choices=McpServer.Scope.choices)

    def __init__(self, *args: Any, way: Way, scopes: list[tuple[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["scope"].choices = scopes
        self._questions = way.questions
        for question in way.questions:
            self.fields[question.key] = _field(question)
        self.order_fields(["called", *(each.key for each in way.questions), "scope"])

    def answers(self) -> dict[str, str]:
        """By the keys of the questions."""
        return {each.key: str(self.cleaned_data.get(each.key) or "") for each in self._questions}


def form_of(
    way: Way,
    server: ServerJson,
    posted: Mapping[str, Any] | None,
    scopes: list[tuple[str, Any]],
) -> WayForm:
    return WayForm(
        posted,
        way=way,
        scopes=scopes,
        prefix=f"way{way.number}",
        initial={"called": short_name(server.name)},
    )


def _field(question: Question) -> forms.Field:
    source = question.input
    told: dict[str, Any] = {
        "label": question.label,
        "help_text": source.description
        or (_("Stored sealed and never shown again.") if source.is_secret else ""),
        "required": source.is_required and (source.is_secret or not source.default),
    }
    if source.choices and not source.is_secret:
        choices = [(each, each) for each in source.choices]
        if source.default not in source.choices:
            choices.insert(0, ("", "–"))
        return forms.ChoiceField(choices=choices, initial=source.default, **told)
    attrs = {"autocomplete": "off", "spellcheck": "false"}
    if source.is_secret:
        # What a registry gives away for one is none, and is not shown as if it were.
        return Secret(widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}), **told)
    return forms.CharField(initial=source.default, widget=forms.TextInput(attrs=attrs), **told)
