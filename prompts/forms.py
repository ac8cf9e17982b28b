"""The forms of the pages of prompts. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .models import PromptSource

_TEXT = {"rows": 14, "autocomplete": "off"}


def _reason() -> forms.CharField:
    return forms.CharField(
        label=_("Reason"),
        required=False,
        help_text=_("Only where an agent whose suites are not green is given it all the same."),
    )


class VersionForm(OurForm):
    text = forms.CharField(
        label=_("Text"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs=_TEXT),
        help_text=_(
            "{{tone}} stands for a variable declared below; {{person}}, {{organisation}}, {{agent}} and "
            "{{day}} are filled in by the conversation. Other braces stand for themselves."
        ),
    )
    variables = forms.CharField(
        label=_("Variables"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false", "autocomplete": "off"}),
        help_text=_(
            "One a line, as “tone = kind # how it speaks”. Without a default, who uses the prompt gives a "
            "value."
        ),
    )
    note = forms.CharField(label=_("What changes"), required=False)
    label = forms.CharField(
        label=_("Label it"),
        required=False,
        help_text=_("Such as production or staging. Empty: labels stay where they are."),
    )
    reason = _reason()


class PromptForm(VersionForm):
    name = forms.CharField(
        label=_("Name"),
        required=False,
        help_text=_("Small letters, digits and hyphens; agents name it so."),
    )
    description = forms.CharField(label=_("What it is for"), required=False)
    field_order = ("name", "description", "text", "variables", "note", "label", "reason")


class ImportForm(OurForm):
    file = forms.CharField(
        label=_("Prompt as YAML"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "autocomplete": "off"}),
        help_text=_("Versions that are missing here are added, and labels are moved as it says."),
    )
    reason = _reason()


class LabelForm(OurForm):
    label = forms.CharField(label=_("Label"), required=False)
    version = forms.CharField(
        label=_("Version"), required=False, help_text=_("A number, a label, or latest.")
    )
    reason = _reason()


class SourceForm(OurForm):
    kind = forms.ChoiceField(label=_("Kind"), choices=PromptSource.Kind.choices)
    address = forms.CharField(label=_("Address"), required=False)
    secret = forms.CharField(
        label=_("Key"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_(
            "Of Langfuse the public and the secret key with a colon between them, of another Agentsite a "
            "token with the scope “conversations:read”. It is never shown again."
        ),
    )
    folder = forms.CharField(
        label=_("Folder"),
        required=False,
        help_text=_("Of a repository: each .md and .txt file in it is a prompt."),
    )
    commit = forms.CharField(
        label=_("Commit"),
        required=False,
        help_text=_("Of a repository: all 40 digits of its hash."),
    )
    labels = forms.CharField(
        label=_("Labels"),
        required=False,
        initial="production = production",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "autocomplete": "off"}),
        help_text=_("One a line: what it is called there, and here."),
    )
    moves_labels = forms.BooleanField(
        label=_("Labels here follow without a person’s word"),
        required=False,
        help_text=_(
            "Not those by which an agent names a prompt whose changes wait for a release: these wait too."
        ),
    )

    def values(self) -> dict[str, Any]:
        given = dict(self.cleaned_data)
        lines = [line.partition("=") for line in given["labels"].splitlines() if line.strip()]
        given["labels"] = {there.strip(): (here or there).strip() for there, _sign, here in lines}
        return given


class ChangeSourceForm(OurForm):
    moves_labels = forms.BooleanField(
        label=_("Labels here follow without a person’s word"), required=False
    )
    commit = forms.CharField(label=_("Commit"), required=False)
