"""The forms for budgets. Amounts are typed as people say them: whole tokens, or dollars."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Organisation, User

from .amounts import LARGEST_TOKENS, MONEY, units_of
from .models import Budget


class AmountForm(OurForm):
    """Limit, unit and period."""

    limit = forms.DecimalField(
        label=_("Limit"),
        min_value=0,
        max_value=Decimal(LARGEST_TOKENS),
        decimal_places=2,
        help_text=_("Tokens, or US dollars."),
    )
    unit = forms.ChoiceField(label=_("Of what"), choices=Budget.Unit.choices)
    period = forms.ChoiceField(label=_("How often"), choices=Budget.Period.choices)

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        limit, unit = cleaned.get("limit"), cleaned.get("unit")
        if limit is not None and unit == Budget.Unit.TOKENS and limit != int(limit):
            self.add_error("limit", _("Tokens are whole numbers."))
        return cleaned

    def amount(self) -> dict[str, Any]:
        """What `set_budget` takes of a valid form."""
        limit, unit = self.cleaned_data["limit"], self.cleaned_data["unit"]
        return {
            "unit": unit,
            "period": self.cleaned_data["period"],
            "limit": units_of(limit) if unit == MONEY else int(limit),
        }


class ConversationBudgetForm(AmountForm):
    pass


class BudgetForm(AmountForm):
    """A budget of an organisation or one of its members."""

    scope = forms.TypedChoiceField(label=_("For"), coerce=int)
    user = forms.ModelChoiceField(
        label=_("Member"),
        queryset=User.objects.none(),
        to_field_name="uid",
        required=False,
        empty_label=_("Nobody in particular"),
    )
    field_order = ["scope", "user", "limit", "unit", "period"]

    def __init__(
        self, *args: Any, organisation: Organisation, with_deployment: bool, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._organisation = organisation
        scopes = [Budget.Scope.ORGANISATION, Budget.Scope.USER]
        if with_deployment:
            scopes += [Budget.Scope.DEPLOYMENT, Budget.Scope.PERSON]
        fields: Any = self.fields
        fields["scope"].choices = [(scope.value, scope.label) for scope in scopes]
        fields["user"].queryset = User.objects.filter(
            memberships__organisation=organisation
        ).order_by("username")

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if cleaned.get("scope") == Budget.Scope.PERSON:
            return cleaned  # of one, or of each
        chosen = cleaned.get("scope") == Budget.Scope.USER
        if "scope" in cleaned and "user" in cleaned and chosen != (cleaned["user"] is not None):
            self.add_error(
                "user",
                _("Choose the member.") if chosen else _("This budget is for no single member."),
            )
        return cleaned

    def values(self) -> dict[str, Any]:
        """All that `set_budget` takes but the actor."""
        scope = Budget.Scope(self.cleaned_data["scope"])
        whole = scope in {Budget.Scope.DEPLOYMENT, Budget.Scope.PERSON}
        return {
            "scope": scope,
            "organisation": None if whole else self._organisation,
            "user": self.cleaned_data["user"],
            **self.amount(),
        }
