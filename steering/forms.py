"""The form of the page of steering files. It shapes input; the action judges it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Organisation, User
from agents.listing import listed_agents
from agents.models import Agent
from chat.forms import NamedChoice


class SteeringForm(OurForm):
    agent = NamedChoice(
        label=_("For"),
        queryset=Agent.objects.none(),
        to_field_name="uid",
        required=False,
        empty_label=_("all agents"),
    )
    # Longer texts are refused by the action, which names the rule.
    text = forms.CharField(
        label=_("Standing instructions, in Markdown"),
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 12}),
        help_text=_("They stand in every prompt from the next run on. Empty: there are none."),
    )

    def __init__(self, *args: Any, user: User, organisation: Organisation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["agent"].queryset = listed_agents(user, organisation)
