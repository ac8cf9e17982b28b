"""Budgets in the admin: how they stand, for staff to set and to lift."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Case, DateField, OuterRef, QuerySet, Subquery, Sum, Value, When
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminDecimalFieldWidget

from accounts.administration.requests import actor_of, beside_its_field
from accounts.adminwrites import DeletesEach
from accounts.formwords import OurModelForm
from spending.actions.budgets import check_amount, check_subject, remove_budget, set_budget
from spending.amounts import LARGEST_TOKENS, MONEY, amount_text, dollars_of, units_of
from spending.models import Budget, BudgetPeriod
from spending.periods import starts_on

SUBJECT = ("scope", "organisation", "user", "unit", "period")


class BudgetForm(OurModelForm):
    amount = forms.DecimalField(
        label=_("Limit"),
        min_value=0,
        max_value=LARGEST_TOKENS,
        decimal_places=2,
        help_text=_("Whole tokens, or US dollars."),
        widget=UnfoldAdminDecimalFieldWidget(),
    )

    class Meta:
        model = Budget
        fields = SUBJECT

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        budget = self.instance
        if budget.pk:
            is_money = budget.unit == MONEY
            self.initial["amount"] = dollars_of(budget.limit) if is_money else budget.limit
        elif "scope" in self.fields:
            scope: Any = self.fields["scope"]
            # A conversation's own is set on its page.
            scope.choices = [
                choice for choice in scope.choices if choice[0] != Budget.Scope.CONVERSATION
            ]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        budget = self.instance
        unit = cleaned.get("unit", budget.unit)
        period = cleaned.get("period", budget.period)
        if unit != MONEY and cleaned["amount"] != int(cleaned["amount"]):
            self.add_error("amount", _("Tokens are whole numbers."))
            return cleaned
        amount = cleaned["amount"]
        cleaned["limit"] = units_of(amount) if unit == MONEY else int(amount)
        with beside_its_field(self):
            check_amount(unit, period, cleaned["limit"])
            if not budget.pk:
                check_subject(
                    Budget.Scope(cleaned["scope"]),
                    cleaned["organisation"],
                    cleaned["user"],
                    None,
                )
        return cleaned


def _summed(periods: QuerySet[BudgetPeriod], column: str) -> QuerySet[Any, Any]:
    """Of a budget for each person, what all have together."""
    by_budget = periods.order_by().values("budget")
    return by_budget.annotate(together=Sum(column)).values("together")


def _figure(budget: Budget, amount: int | None) -> str:
    """Of a budget for each run there is none: the runs of all conversations have nothing in common."""
    each_run = budget.period == Budget.Period.RUN
    return "—" if each_run else amount_text(budget.unit, amount or 0)


class BudgetAdmin(DeletesEach, ModelAdmin):
    """Those in force. Lifting one keeps its figures."""

    form = BudgetForm
    actions = None
    list_display = ["whose", "limit_shown", "period", "spent", "reserved", "updated_by"]
    list_filter = ["scope", "unit", "period"]
    list_select_related = ["organisation", "user", "updated_by", "conversation__owner"]
    search_fields = ["=uid", "organisation__name", "user__username"]
    autocomplete_fields = ["organisation", "user"]
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Budget]:
        rows: QuerySet[Budget] = super().get_queryset(request)
        now = timezone.now()
        begins = Case(
            *(When(period=name, then=Value(starts_on(name, now))) for name in Budget.Period),
            output_field=DateField(),
        )
        current = BudgetPeriod.objects.filter(budget=OuterRef("pk"), starts_on=OuterRef("begins"))
        return rows.filter(removed_at=None).annotate(
            begins=begins,
            now_spent=Subquery(_summed(current, "spent")),
            now_reserved=Subquery(_summed(current, "reserved")),
        )

    def get_fields(self, request: HttpRequest, obj: Budget | None = None) -> list[str]:
        if obj is None:
            return [*SUBJECT, "amount"]
        return [*SUBJECT, "amount", "spent", "reserved", "created_by", "updated_by", "updated_at"]

    def get_readonly_fields(self, request: HttpRequest, obj: Budget | None = None) -> list[str]:
        facts = ["spent", "reserved", "created_by", "updated_by", "updated_at"]
        return [*SUBJECT, *facts] if obj else []

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        stored = set_budget(
            actor=actor_of(request),
            scope=Budget.Scope(obj.scope),
            organisation=obj.organisation if obj.scope != Budget.Scope.CONVERSATION else None,
            user=obj.user,
            conversation=obj.conversation,
            unit=obj.unit,
            period=obj.period,
            limit=form.cleaned_data["limit"],
        )
        obj.pk, obj.limit = stored.pk, stored.limit

    def delete_model(self, request: HttpRequest, obj: Budget) -> None:
        remove_budget(actor=actor_of(request), budget=obj)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Only the cap goes; what was spent under it stays."""
        return [str(each) for each in objs], {}, set(), []

    @admin.display(description=_("limit"))
    def limit_shown(self, obj: Budget) -> str:
        return obj.limit_text

    @admin.display(description=_("spent"))
    def spent(self, obj: Any) -> str:
        return _figure(obj, obj.now_spent)

    @admin.display(description=_("reserved"))
    def reserved(self, obj: Any) -> str:
        return _figure(obj, obj.now_reserved)
