"""The forms of the pages of evals. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.formwords import OurForm
from accounts.models import Organisation, User
from agents.listing import listed_agents
from agents.models import Agent, Environment
from chat.forms import NamedChoice
from spending.amounts import LARGEST_DOLLARS, units_of

_TEXT = {"rows": 24, "spellcheck": "false", "autocomplete": "off"}


class SuiteForm(OurForm):
    name = forms.CharField(label=_("Name"), required=False)
    description = forms.CharField(
        label=_("What it is for"), required=False, widget=forms.Textarea(attrs={"rows": 3})
    )


class SuiteSettingsForm(SuiteForm):
    judge_provider = forms.CharField(
        label=_("Provider of judges"),
        required=False,
        help_text=_("Empty: the first one for which whoever starts an evaluation has a key."),
    )
    judge_model = forms.CharField(label=_("Model of judges"), required=False)
    judges = forms.TypedChoiceField(
        label=_("Judges of an answer"),
        coerce=int,
        choices=[("1", _("one")), ("2", _("two, whose disagreement is shown"))],
    )


class ImportForm(OurForm):
    text = forms.CharField(
        label=_("Suite as YAML"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={**_TEXT, "rows": 8}),
        help_text=_("The suite of that name becomes what the file says; else one is made."),
    )


class CaseForm(OurForm):
    text = forms.CharField(
        label=_("Case as YAML"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs=_TEXT),
    )


class StartForm(OurForm):
    agent = NamedChoice(
        label=_("Agent"), queryset=Agent.objects.none(), to_field_name="uid", empty_label=None
    )
    version = forms.IntegerField(
        label=_("Version"), required=False, min_value=1, help_text=_("Empty: the newest one.")
    )
    environment = NamedChoice(
        label=_("Environment"),
        queryset=Environment.objects.none(),
        to_field_name="uid",
        empty_label=None,
    )
    scripted = forms.BooleanField(
        label=_("Play the cases' scripts, without a model"), required=False
    )
    provider = forms.CharField(
        label=_("Provider"), required=False, help_text=_("Empty: the version's own.")
    )
    model = forms.CharField(
        label=_("Model"), required=False, help_text=_("Empty: the version's own.")
    )
    skills = forms.CharField(
        label=_("Versions of skills"),
        required=False,
        help_text=_("As in “tidy=1.2 review=canary”. Empty: those that the version names."),
    )
    prompts = forms.CharField(
        label=_("Versions of prompts"),
        required=False,
        help_text=_("As in “tone=3 rules=staging”. Empty: those that the version names."),
    )
    repetitions = forms.IntegerField(label=_("Tries of each case"), initial=1)
    parallel = forms.IntegerField(label=_("Tries at once"))
    limit = forms.DecimalField(
        label=_("May cost"),
        required=False,
        min_value=0,
        max_value=LARGEST_DOLLARS,
        max_digits=14,
        decimal_places=8,
        help_text=_("US dollars, all tries and judges together. Empty: what other budgets leave."),
    )
    uses_cache = forms.BooleanField(
        label=_("Use replies from before where nothing changed"), required=False, initial=True
    )
    note = forms.CharField(label=_("Note"), required=False)

    def __init__(self, *args: Any, user: User, organisation: Organisation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["agent"].queryset = listed_agents(user, organisation)
        offered = Environment.objects.visible_to(user).usable_in(organisation)
        fields["environment"].queryset = offered.on_offer()
        fields["parallel"].initial = settings.AGENTSITE_EVAL_PARALLEL

    def values(self) -> dict[str, Any]:
        given = dict(self.cleaned_data)
        given.pop("agent")
        given.pop("version")
        limit = given.pop("limit")
        for field in ("skills", "prompts"):
            words = [word.partition("=") for word in given.pop(field, "").split()]
            given[field] = {name: version for name, _sign, version in words}
        given["limit"] = None if limit is None else units_of(limit)
        return given


class TrySkillForm(StartForm):
    """The skill's version is said by the page."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["skills"]


class MakeCaseForm(OurForm):
    suite = forms.ChoiceField(label=_("Suite"))
    answer = forms.ChoiceField(label=pgettext_lazy("noun", "Answer"))
    name = forms.CharField(
        label=_("Name of the case"),
        required=False,
        help_text=_("Small letters, digits and hyphens. Empty: it gets one."),
    )


class RequirementForm(OurForm):
    suite = forms.ChoiceField(label=_("Suite"))
    repetitions = forms.IntegerField(label=_("Tries of each case"), initial=1)
    at_least = forms.IntegerField(
        label=_("Percent of tries that pass"),
        initial=100,
        help_text=_("Beside that no case does worse than with the version in use."),
    )
    by_script = forms.BooleanField(
        label=_("Tries by the cases' scripts, without a model, count"), required=False
    )


class CanaryForm(OurForm):
    version = forms.IntegerField(label=_("Version"))
    share = forms.IntegerField(label=_("Percent of new conversations"), initial=10)
    reason = forms.CharField(label=_("Reason"), required=False)


class PromoteForm(OurForm):
    number = forms.IntegerField(required=False, widget=forms.HiddenInput)
    reason = forms.CharField(label=_("Reason"), required=False)


class ReleaseForm(OurForm):
    version = forms.IntegerField(label=_("Version"))
    reason = forms.CharField(
        label=_("Reason"),
        required=False,
        help_text=_("Why it is let pass although a suite is not green; it stays with your name."),
    )
