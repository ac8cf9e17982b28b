"""The form of a person's wish for a brief. It shapes input; the action judges it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .models import BriefWish


class WishForm(OurForm):
    is_on = forms.BooleanField(label=_("Send me a brief"), required=False)
    at = forms.TimeField(
        label=_("At"), widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M")
    )
    timezone = forms.CharField(
        label=_("Time zone"),
        help_text=_("An IANA name, as Europe/Berlin."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    days = forms.ChoiceField(label=_("Days"), choices=BriefWish.Days.choices)
    by_mail = forms.BooleanField(label=_("By mail"), required=False)
    by_webhook = forms.BooleanField(
        label=_("By webhook"),
        required=False,
        help_text=_(
            "Endpoints of the organisation that subscribed to x.brief.ready are told its id; what it"
            " says only you can read."
        ),
    )
    is_quiet = forms.BooleanField(
        label=_("Only when there is something to tell"),
        required=False,
        help_text=_("What you spent in conversations of your own alone is nothing to tell."),
    )
    is_written = forms.BooleanField(
        label=_("With a short text that a model writes"),
        required=False,
        help_text=_(
            "What stands in the brief is sent to the model, and the call counts in your budgets. The"
            " text stands above the lines, which stay as they are."
        ),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if settings.AGENTSITE_BRIEF_TOKENS_PER_DAY <= 0:
            del self.fields["is_written"]
