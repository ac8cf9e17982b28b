"""The forms of the pages of pipelines. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Organisation, User
from agents.models import Environment
from chat.forms import NamedChoice
from spending.amounts import LARGEST_DOLLARS

_TEXT = {"rows": 24, "spellcheck": "false", "autocomplete": "off", "class": "pipeline-text"}


class DefinitionForm(OurForm):
    text = forms.CharField(
        label=_("Pipeline as YAML"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs=_TEXT),
        help_text=_(
            "Its steps, what each is asked, and where it leads. What was saved before stays as a version."
        ),
    )
    note = forms.CharField(label=_("What changes"), required=False)


class StartForm(OurForm):
    question = forms.CharField(
        label=_("Question"), required=False, widget=forms.Textarea(attrs={"rows": 4})
    )
    environment = NamedChoice(
        label=_("Environment"),
        queryset=Environment.objects.none(),
        to_field_name="uid",
        empty_label=None,
    )
    limit = forms.DecimalField(
        label=_("May cost"),
        required=False,
        min_value=0,
        max_value=LARGEST_DOLLARS,
        max_digits=14,
        decimal_places=8,
        help_text=_("US dollars, all steps together. Empty: what other budgets leave."),
    )
    scripted = forms.BooleanField(
        label=_("Play the steps' scripts, without a model"), required=False
    )

    def __init__(self, *args: Any, user: User, organisation: Organisation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        offered = Environment.objects.visible_to(user).usable_in(organisation)
        fields["environment"].queryset = offered.on_offer()


class ContinueForm(OurForm):
    limit = forms.DecimalField(
        label=_("May cost"),
        required=False,
        min_value=0,
        max_value=LARGEST_DOLLARS,
        max_digits=14,
        decimal_places=8,
        help_text=_("US dollars, all steps together, what was spent among it."),
    )


class DecideForm(OurForm):
    comment = forms.CharField(
        label=_("Why, or what is to change"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
