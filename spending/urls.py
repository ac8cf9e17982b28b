"""The addresses of the pages of what is spent."""

from __future__ import annotations

from django.urls import path

from wire import converters  # noqa: F401 - registers `id`

from .views import budgets, usage

app_name = "spending"

urlpatterns = [
    path("usage/", usage.show_usage, name="usage"),
    path("usage/export/", usage.export_usage, name="usage-export"),
    path("usage/budgets/", budgets.budgets, name="budgets"),
    path("usage/budgets/<id:uid>/remove/", budgets.remove, name="budget-remove"),
    path("c/<id:uid>/budget/", budgets.conversation_budget, name="budget"),
    path("c/<id:uid>/budget/near/", budgets.near_end, name="near-end"),
]
