"""The form of what a person wants to be told of. It shapes input; the action judges it."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .models import When

_TIMES = [(When.ALWAYS.value, When.ALWAYS.label), (When.NEVER.value, When.NEVER.label)]


class NoticeForm(OurForm):
    waits_by_mail = forms.ChoiceField(label=_("What waits for me, by mail"), choices=When.choices)
    waits_by_push = forms.ChoiceField(label=_("What waits for me, by push"), choices=When.choices)
    done_by_mail = forms.ChoiceField(label=_("What has ended, by mail"), choices=When.choices)
    done_by_push = forms.ChoiceField(label=_("What has ended, by push"), choices=When.choices)
    waits_by_webhook = forms.ChoiceField(
        label=_("What waits for me, by webhook"), choices=When.choices
    )
    done_by_webhook = forms.ChoiceField(
        label=_("What has ended, by webhook"),
        choices=When.choices,
        help_text=_(
            "Endpoints of the organisation that subscribed to x.notice.waiting and x.notice.ended are"
            " told which conversation it is, and that it is for you."
        ),
    )
    brief_by_push = forms.ChoiceField(label=_("My daily brief, by push"), choices=_TIMES)
    # The range is the action's rule.
    mail_after_minutes = forms.IntegerField(
        label=_("Mails after so many minutes"),
        widget=forms.NumberInput(attrs={"inputmode": "numeric"}),
    )
    tells_contents = forms.BooleanField(
        label=_("Pushes name what waits and the conversation"),
        required=False,
        help_text=_("Else they only say that something is there. What a call holds is in none."),
    )
    quiet_from = forms.TimeField(
        label=_("Quiet from"),
        required=False,
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
    )
    quiet_until = forms.TimeField(
        label=_("Quiet until"),
        required=False,
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        help_text=_("What comes in between is told at the end of it, together."),
    )
    timezone = forms.CharField(
        label=_("Time zone"),
        help_text=_("An IANA name, as Europe/Berlin."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
