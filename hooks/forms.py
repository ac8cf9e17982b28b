"""The form of a hook. It shapes input; the action judges it."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .models import Hook


class HookForm(OurForm):
    name = forms.CharField(label=_("Name"), required=False)
    kind = forms.ChoiceField(label=_("What is asked"), choices=Hook.Kind.choices)
    target = forms.CharField(
        label=_("Name or address"),
        required=False,
        help_text=_("Of an installed hook its name, of a signed request the address."),
    )
    tool = forms.CharField(
        label=_("Tools"),
        required=False,
        initial="*",
        help_text=_("A name, or a pattern in which * stands for anything, such as mcp__mail__*."),
    )
    position = forms.IntegerField(
        label=_("Order"), initial=10, help_text=_("Hooks are asked from the lowest number on.")
    )
    deadline = forms.FloatField(label=_("Deadline in seconds"), initial=5)
    on_failure = forms.ChoiceField(
        label=_("When it fails or is late"),
        choices=Hook.OnFailure.choices,
        initial=Hook.OnFailure.REFUSE,
    )
    enabled = forms.BooleanField(label=_("In use"), required=False, initial=True)
