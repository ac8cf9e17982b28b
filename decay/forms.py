"""The form of a rule. It shapes input; the action judges it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .actions.rules import FIELDS
from .models import DecayRule, Step

EMPTY = _("Empty: there is no such step.")


class RuleForm(OurForm):
    summary_days = forms.IntegerField(
        label=_("Days until only the beginning is left"), required=False, help_text=EMPTY
    )
    marker_days = forms.IntegerField(
        label=_("Days until only a few words are left"), required=False, help_text=EMPTY
    )
    gone_days = forms.IntegerField(
        label=_("Days until it is gone"), required=False, help_text=EMPTY
    )
    also_unconfirmed = forms.BooleanField(
        label=_("Also what waits for a yes"),
        required=False,
        help_text=_("What came from strangers’ words and nobody confirmed; else it stays."),
    )

    @property
    def days(self) -> dict[Step, int | None]:
        return {step: self.cleaned_data.get(name) for step, name in FIELDS.items()}


def form_of(rule: DecayRule | None) -> RuleForm:
    initial: dict[str, Any] = {"summary_days": 90, "marker_days": 365}
    if rule is not None:
        initial = {name: getattr(rule, name) for name in RuleForm.base_fields}
    return RuleForm(initial=initial)
