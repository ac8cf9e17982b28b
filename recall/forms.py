"""The forms of the memory page. They shape input; the actions judge it."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from memory.actions.remembering import LEARNABLE


class MemoryForm(OurForm):
    text = forms.CharField(
        label=_("What is to be remembered"),
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("One thing, in a sentence that can be understood by itself. No passwords."),
    )
    kind = forms.ChoiceField(
        label=_("Kind"), choices=[(kind.value, kind.label) for kind in LEARNABLE]
    )


class CorrectionForm(OurForm):
    text = forms.CharField(label=_("How it is"), widget=forms.Textarea(attrs={"rows": 4}))
