"""The form by which a person lets a client in: where, for what, for how long. The action judges it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Organisation, TokenScope

LIFETIMES = [("30", _("30 days")), ("90", _("90 days")), ("365", _("One year"))]


_AT_MCP = {
    TokenScope.CONVERSATIONS_READ: _("Read conversations, memories, documents, skills and prompts")
}
"""Scopes that open more at `/mcp` than their names say."""


class ConsentForm(OurForm):
    organisation = forms.ChoiceField(label=_("In which organisation"))
    scopes = forms.MultipleChoiceField(
        label=_("What it may do as you"), widget=forms.CheckboxSelectMultiple
    )
    days = forms.ChoiceField(label=_("For how long"), choices=LIFETIMES, initial="90")

    def __init__(
        self,
        data: Any = None,
        *,
        scopes: Sequence[str],
        organisations: Sequence[Organisation],
        shown: Organisation,
    ) -> None:
        super().__init__(data)
        asked = [TokenScope(each) for each in scopes]
        chosen, where = self.fields["scopes"], self.fields["organisation"]
        assert isinstance(chosen, forms.MultipleChoiceField)  # noqa: S101 - declared above
        assert isinstance(where, forms.ChoiceField)  # noqa: S101 - declared above
        chosen.choices = [(each.value, _AT_MCP.get(each, each.label)) for each in asked]
        # A client that decides for its person is trusted more: that is a choice of its own.
        chosen.initial = [each for each in asked if each is not TokenScope.APPROVALS_DECIDE]
        where.choices = [(each.uid, each.name) for each in organisations]
        where.initial = shown.uid
