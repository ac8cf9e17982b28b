"""The forms of the pages of prompts. They shape input; the actions judge it."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

_TEXT = {"rows": 14, "autocomplete": "off"}


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


class PromptForm(VersionForm):
    name = forms.CharField(
        label=_("Name"),
        required=False,
        help_text=_("Small letters, digits and hyphens; agents name it so."),
    )
    description = forms.CharField(label=_("What it is for"), required=False)
    field_order = ("name", "description", "text", "variables", "note", "label")


class ImportForm(OurForm):
    file = forms.CharField(
        label=_("Prompt as YAML"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "autocomplete": "off"}),
        help_text=_("Versions that are missing here are added, and labels are moved as it says."),
    )


class LabelForm(OurForm):
    label = forms.CharField(label=_("Label"), required=False)
    version = forms.CharField(
        label=_("Version"), required=False, help_text=_("A number, a label, or latest.")
    )
