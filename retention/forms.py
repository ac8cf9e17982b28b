"""The form of a rule. It shapes input; the action judges it."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm


class RuleForm(OurForm):
    days = forms.IntegerField(
        label=_("Days"),
        initial=365,
        help_text=_("Conversations that nobody has touched for so long are deleted."),
    )
    only_archived = forms.BooleanField(
        label=_("Only archived ones"),
        required=False,
        help_text=_("All others stay, however old."),
    )
