"""The forms of the pages. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Organisation, User
from agents.models import Agent, Environment
from agents.namesakes import told_apart
from agents.switches import help_text, offered
from harness.grading import ITERATIONS
from vaults.models import Vault


def as_typed(text: str) -> str:
    """Forms send each end of a line as CR and LF (HTML, "multipart/form-data"); the socket sends LF."""
    return text.replace("\r\n", "\n")


class TitleForm(OurForm):
    # Longer titles are refused by the action, which names the rule.
    title = forms.CharField(label=_("Title"), required=False, strip=True)


CHECKS_HELP = _(
    "One a line, run in the sandbox before it is judged, and passed where the exit code is 0. “2: make test”"
    " keeps the second criterion from being met where it fails."
)


class OutcomeForm(OurForm):
    description = forms.CharField(
        label=_("What it is to bring about"), widget=forms.Textarea(attrs={"rows": 3})
    )
    rubric = forms.CharField(
        label=_("Criteria"),
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text=_("One a line, each beginning with a hyphen."),
    )
    checks = forms.CharField(
        label=_("Commands that check it"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text=CHECKS_HELP,
    )
    # The range is the action's rule.
    max_iterations = forms.IntegerField(
        label=_("How often it is judged at most"),
        initial=ITERATIONS,
        widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
    )

    def clean_description(self) -> str:
        return as_typed(self.cleaned_data["description"])

    def clean_rubric(self) -> str:
        return as_typed(self.cleaned_data["rubric"])


class NamedChoice(forms.ModelChoiceField):  # type: ignore[type-arg]
    """Choices by name, with the id beside a name that several of them have."""

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.name} · {obj.uid}" if obj.pk in self._namesakes else str(obj.name)

    @cached_property
    def _namesakes(self) -> frozenset[int]:
        assert self.queryset is not None  # noqa: S101 - declared with one
        return frozenset(row.pk for row in told_apart(self.queryset) if row.namesake)


class NewConversationForm(OurForm):
    agent = forms.ModelChoiceField(
        label=_("Agent"),
        queryset=Agent.objects.none(),
        to_field_name="uid",
        empty_label=None,
        widget=forms.RadioSelect,
        error_messages={"invalid_choice": _("This agent is not on offer. Choose another one.")},
    )
    environment = NamedChoice(
        label=_("Environment"),
        queryset=Environment.objects.none(),
        to_field_name="uid",
        empty_label=None,
        help_text=_("Where the agent's tools run and what they may use."),
        error_messages={
            "invalid_choice": _("This environment is not on offer. Choose another one.")
        },
    )
    message = forms.CharField(
        label=_("First message"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("You can also begin with an empty conversation."),
    )

    vaults = forms.ModelMultipleChoiceField(
        label=_("Vaults"),
        queryset=Vault.objects.none(),
        to_field_name="uid",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Their tokens go to the services they are for; the agent never reads them."),
        error_messages={"invalid_choice": _("This vault is not in force. Choose another one.")},
    )

    def __init__(self, *args: Any, user: User, organisation: Organisation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = Agent.objects.visible_to(user).usable_in(organisation).on_offer()
        environments = Environment.objects.visible_to(user).usable_in(organisation).on_offer()
        vaults = Vault.objects.visible_to(user).filter(organisation=organisation).in_force()
        _offer(self.fields["agent"], agents.select_related("current"))
        _offer(self.fields["environment"], environments)
        _offer(self.fields["vaults"], vaults)
        for name, label in offered().items():
            self.fields[name] = forms.BooleanField(
                label=label, required=False, help_text=help_text(name)
            )

    def clean_message(self) -> str:
        return as_typed(self.cleaned_data["message"])

    def features(self) -> dict[str, bool]:
        return {name: self.cleaned_data[name] for name in offered()}

    def vault_uids(self) -> list[str]:
        return [vault.uid for vault in self.cleaned_data["vaults"]]

    def switches(self) -> list[forms.BoundField]:
        return [self[name] for name in offered()]


class PreferenceForm(OurForm):
    default_agent = NamedChoice(
        label=_("Agent for new conversations"),
        queryset=Agent.objects.none(),
        to_field_name="uid",
        required=False,
        empty_label=_("The usual one"),
    )
    default_environment = NamedChoice(
        label=_("Environment for new conversations"),
        queryset=Environment.objects.none(),
        to_field_name="uid",
        required=False,
        empty_label=_("The usual one"),
    )

    def __init__(self, *args: Any, user: User, organisation: Organisation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agents = Agent.objects.visible_to(user).usable_in(organisation).on_offer()
        environments = Environment.objects.visible_to(user).usable_in(organisation).on_offer()
        _offer(self.fields["default_agent"], agents)
        _offer(self.fields["default_environment"], environments)


def _offer(field: forms.Field, queryset: Any) -> None:
    assert isinstance(field, forms.ModelChoiceField)  # noqa: S101 - declared above
    field.queryset = queryset
