"""What new conversations begin with, for the server and for organisations, in the admin."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin

from accounts.administration.requests import actor_of
from accounts.adminwrites import DeletesEach
from accounts.formwords import OurModelForm
from conversations.actions.preferences import clear_shared_defaults, set_shared_defaults
from conversations.models import Defaults


class DefaultsAdmin(DeletesEach, ModelAdmin):
    form = OurModelForm
    actions = None
    list_display = ["__str__", "agent", "environment"]
    list_select_related = ["organisation", "agent", "environment"]
    fields = ["organisation", "agent", "environment"]
    show_full_result_count = False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("organisation",) if obj else ()

    def save_model(self, request: HttpRequest, obj: Defaults, form: Any, change: bool) -> None:
        stored = set_shared_defaults(
            actor=actor_of(request),
            organisation=obj.organisation,
            agent=obj.agent,
            environment=obj.environment,
        )
        obj.pk = stored.pk

    def delete_model(self, request: HttpRequest, obj: Defaults) -> None:
        clear_shared_defaults(actor=actor_of(request), organisation=obj.organisation)
