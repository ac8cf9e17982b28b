"""The forms of the folders' pages. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Organisation, User
from agents.listing import listed_agents
from agents.models import Agent
from chat.forms import NamedChoice

from .models import FolderMember


class FolderForm(OurForm):
    # Longer texts are refused by the action, which names the rule.
    name = forms.CharField(label=_("Name"), required=False)
    instructions = forms.CharField(
        label=_("Instructions"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=_(
            "What every conversation that begins here is told, beside its agent's own instructions."
            " Conversations that began before stay with what they were told."
        ),
    )
    agent = NamedChoice(
        label=_("Agent"),
        queryset=Agent.objects.none(),
        to_field_name="uid",
        required=False,
        empty_label=_("whoever begins chooses"),
    )

    def __init__(self, *args: Any, user: User, organisation: Organisation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["agent"].queryset = listed_agents(user, organisation)

    def values(self) -> dict[str, Any]:
        given = self.cleaned_data
        return {
            "name": given["name"],
            "instructions": given["instructions"],
            "default_agent": given["agent"],
        }


class MemberForm(OurForm):
    whom = forms.CharField(
        label=_("Name or mail address"),
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(label=_("What they may do"), choices=FolderMember.Role.choices)
