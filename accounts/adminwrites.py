"""For pages of the administration: deleting many is deleting each, through the same action."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest


class DeletesEach:
    """Beside `ModelAdmin`, whose `delete_model` calls an action. All of them go or, where one is
    refused, none."""

    def delete_queryset(self: Any, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        with transaction.atomic():
            for one in queryset:
                self.delete_model(request, one)
