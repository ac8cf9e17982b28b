"""The form that starts a comparison. It shapes input; the action judges it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Organisation, User
from agents.models import Agent, Environment
from chat.forms import NamedChoice
from pipelines.models import Pipeline
from spending.amounts import LARGEST_DOLLARS

_MONEY: dict[str, Any] = {
    "required": False,
    "min_value": 0,
    "max_value": LARGEST_DOLLARS,
    "max_digits": 14,
    "decimal_places": 8,
}


class ComparisonForm(OurForm):
    question = forms.CharField(
        label=_("Question"), required=False, widget=forms.Textarea(attrs={"rows": 4})
    )
    pipelines = forms.ModelMultipleChoiceField(
        label=_("Pipelines"),
        queryset=Pipeline.objects.none(),
        to_field_name="uid",
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    agents = forms.ModelMultipleChoiceField(
        label=_("Agents alone"),
        queryset=Agent.objects.none(),
        to_field_name="uid",
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    environment = NamedChoice(
        label=_("Environment"),
        queryset=Environment.objects.none(),
        to_field_name="uid",
        empty_label=None,
    )
    limit = forms.DecimalField(
        label=_("May cost"),
        help_text=_("US dollars, all of it together. Empty: what other budgets leave."),
        **_MONEY,
    )
    scripted = forms.BooleanField(
        label=_("Have the pipelines play their scripts, without a model"), required=False
    )
    judged = forms.BooleanField(label=_("Have a model judge the answers"), required=False)
    judge_provider = forms.CharField(
        label=_("Provider of the judge"),
        required=False,
        help_text=_("Empty: the first one for which you have a key."),
    )
    judge_model = forms.CharField(label=_("Model of the judge"), required=False)

    def __init__(self, *args: Any, user: User, organisation: Organisation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        here = Pipeline.objects.visible_to(user).filter(organisation=organisation)
        fields["pipelines"].queryset = here.on_offer()
        agents = Agent.objects.visible_to(user).usable_in(organisation).on_offer()
        fields["agents"].queryset = agents.order_by("name", "pk")
        offered = Environment.objects.visible_to(user).usable_in(organisation)
        fields["environment"].queryset = offered.on_offer()


class ContinueForm(OurForm):
    limit = forms.DecimalField(
        label=_("May cost"),
        help_text=_("US dollars, all of it together, what was spent among it."),
        **_MONEY,
    )
