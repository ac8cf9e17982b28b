"""The forms of the webhooks' pages. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .models import WebhookEndpoint
from .types import EVERYTHING, GROUPS


class EndpointForm(OurForm):
    # Longer and wrong values are refused by the action, which names the rule.
    url = forms.CharField(
        label=_("Address"),
        widget=forms.URLInput(
            attrs={"placeholder": "https://hooks.example.org/agents", "autocomplete": "off"}
        ),
        help_text=_("Where the events are posted to. A public name and https."),
    )
    description = forms.CharField(
        label=_("Description"), required=False, help_text=_("What it is for; only for you.")
    )
    everything = forms.BooleanField(
        label=_("Every event, also of types that a later release adds"), required=False
    )
    event_types = forms.MultipleChoiceField(
        label=_("Or only these"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        choices=[
            (group, [(name, f"{name}: {told}") for name, told in listed])
            for group, listed in GROUPS
        ],
    )

    @classmethod
    def of(cls, endpoint: WebhookEndpoint) -> EndpointForm:
        return cls(
            initial={
                "url": endpoint.url,
                "description": endpoint.description,
                "everything": EVERYTHING in endpoint.event_types,
                "event_types": endpoint.event_types,
            }
        )

    def values(self) -> dict[str, Any]:
        """As the actions take them."""
        chosen = self.cleaned_data["event_types"]
        return {
            "url": self.cleaned_data["url"],
            "description": self.cleaned_data["description"],
            "event_types": [EVERYTHING] if self.cleaned_data["everything"] else chosen,
        }


class RotationForm(OurForm):
    grace_hours = forms.IntegerField(
        label=_("Hours that the old secret still signs"),
        help_text=_("Both sign until then. 0 if it became known to somebody."),
        widget=forms.NumberInput(attrs={"min": 0, "max": 168, "inputmode": "numeric"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"grace_hours": settings.AGENTSITE_WEBHOOK_SECRET_HOURS})
        super().__init__(*args, **kwargs)
