"""Environment keys and work items in the admin: keys are made and revoked, items only looked at.

A new secret is in the answer to its form alone.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin

from accounts.administration.readonly import ReadOnlyAdmin
from accounts.administration.requests import actor_of, beside_its_field
from accounts.formwords import OurModelForm
from accounts.models import User
from accounts.secretpages import MakesSecrets
from accounts.staff import has_staff_permission
from agents.models import Environment

from .actions.keys import IssuedKey, create_key, revoke_key
from .models import MANAGE_KEYS, EnvironmentKey, WorkItem


class EnvironmentKeyForm(OurModelForm):
    class Meta:
        model = EnvironmentKey
        fields = ["environment", "name"]

    actor: User
    issued: IssuedKey | None = None

    def clean(self) -> dict[str, Any]:
        """Makes the key, so that a refusal stands beside its field."""
        cleaned = super().clean() or {}
        if not self.errors:
            with beside_its_field(self):
                self.issued = create_key(
                    actor=self.actor, environment=cleaned["environment"], name=cleaned["name"]
                )
        return cleaned


class EnvironmentKeyAdmin(MakesSecrets, ModelAdmin):
    form = EnvironmentKeyForm
    actions = ["revoke"]
    list_display = ["name", "beginning", "environment", "last_used_at", "valid", "created_at"]
    list_select_related = ["environment"]
    list_filter = [("revoked_at", admin.EmptyFieldListFilter)]
    search_fields = ["name", "=uid", "environment__name", "=environment__uid"]
    show_full_result_count = False
    _SHOWN = [
        "uid",
        "name",
        "beginning",
        "environment",
        "created_by",
        "created_at",
        "last_used_at",
        "revoked_at",
    ]

    @admin.display(description=_("valid"), boolean=True)
    def valid(self, obj: EnvironmentKey) -> bool:
        return obj.revoked_at is None

    def get_fields(self, request: HttpRequest, obj: EnvironmentKey | None = None) -> list[str]:
        return self._SHOWN if obj else EnvironmentKeyForm.Meta.fields

    def get_readonly_fields(
        self, request: HttpRequest, obj: EnvironmentKey | None = None
    ) -> list[str]:
        return self._SHOWN if obj else []

    def get_form(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        form = super().get_form(request, obj, **options)
        form.actor = actor_of(request)
        return form

    def formfield_for_foreignkey(self, field: Any, request: HttpRequest, **options: Any) -> Any:
        if field.name == "environment":
            visible = Environment.objects.visible_to(actor_of(request))
            options["queryset"] = visible.filter(backend=Environment.Backend.WORKER)
        return super().formfield_for_foreignkey(field, request, **options)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), MANAGE_KEYS)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return has_staff_permission(actor_of(request), MANAGE_KEYS)

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> EnvironmentKey:
        assert form.issued is not None  # noqa: S101 - the form is valid
        key: EnvironmentKey = form.issued.key
        key.secret = form.issued.secret  # type: ignore[attr-defined]
        form.save_m2m = lambda: None
        return key

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Nothing is left to do: the form made it, through the action."""

    def response_add(
        self, request: HttpRequest, obj: EnvironmentKey, post_url_continue: str | None = None
    ) -> HttpResponse:
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": gettext("Secret of “%(name)s”") % {"name": obj.name},
            "opts": self.opts,
            "secret": obj.secret,  # type: ignore[attr-defined]
        }
        answer = render(request, "admin/workers/key_secret.html", context)
        answer["Cache-Control"] = "no-store"
        return answer

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, keys: QuerySet[EnvironmentKey]) -> None:
        chosen = list(keys)
        for key in chosen:
            revoke_key(actor=actor_of(request), key=key)
        message = ngettext("%(count)d key revoked.", "%(count)d keys revoked.", len(chosen))
        messages.success(request, message % {"count": len(chosen)})


class WorkItemAdmin(ReadOnlyAdmin):
    list_display = ["uid", "environment", "state", "ending", "worker", "heartbeat_at", "created_at"]
    list_filter = ["state", "ending"]
    list_select_related = ["environment"]
    search_fields = ["=uid", "=environment__uid", "=conversation__uid", "=worker"]
    search_help_text = _(
        "The id of an item, of its environment or conversation, or a worker's name"
    )
    ordering = ["-id"]
    fields = readonly_fields = [
        "uid",
        "environment",
        "conversation",
        "state",
        "ending",
        "worker",
        "key",
        "offered_at",
        "acknowledged_at",
        "started_at",
        "heartbeat_at",
        "lease_until",
        "stop_requested_at",
        "stopped_at",
        "created_at",
    ]


admin.site.register(EnvironmentKey, EnvironmentKeyAdmin)
admin.site.register(WorkItem, WorkItemAdmin)
