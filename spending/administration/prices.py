"""The price table in the admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.administration.requests import actor_of, beside_its_field
from accounts.adminwrites import DeletesEach
from accounts.formwords import OurModelForm
from accounts.provider_labels import provider_label
from providers.table import KINDS
from spending.actions.prices import RATES, change_price, check_rates, create_price, delete_price
from spending.models import ModelPrice

PROVIDERS = [(kind.name, provider_label(kind)) for kind in KINDS.values()]
_KEY = ("provider", "model", "from_prompt_tokens")


class ModelPriceForm(OurModelForm):
    provider = forms.ChoiceField(
        label=_("Provider"), choices=PROVIDERS, widget=UnfoldAdminSelectWidget(choices=PROVIDERS)
    )

    class Meta:
        model = ModelPrice
        fields = [*_KEY, *RATES]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            with beside_its_field(self):
                check_rates(cleaned)
        return cleaned


class ModelPriceAdmin(DeletesEach, ModelAdmin):
    """US dollars per million tokens."""

    form = ModelPriceForm
    actions = None
    list_display = ["model", "provider", "from_prompt_tokens", *RATES, "updated_at"]
    list_filter = ["provider"]
    search_fields = ["provider", "model"]
    show_full_result_count = False
    fieldsets = [
        (_("For which models"), {"fields": _KEY}),
        (_("US dollars per million tokens"), {"fields": RATES}),
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return _KEY if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        shipped = isinstance(obj, ModelPrice) and bool(obj.seed_digest)
        return bool(super().has_delete_permission(request, obj)) and not shipped

    def save_model(self, request: HttpRequest, obj: ModelPrice, form: Any, change: bool) -> None:
        actor, values = actor_of(request), form.cleaned_data
        rates = {name: values[name] for name in RATES}
        if change:
            change_price(actor=actor, price=obj, rates=rates)
            return
        stored = create_price(actor=actor, rates=rates, **{name: values[name] for name in _KEY})
        obj.pk = stored.pk

    def delete_model(self, request: HttpRequest, obj: ModelPrice) -> None:
        delete_price(actor=actor_of(request), price=obj)
