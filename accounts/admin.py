"""The staff's view of people and organisations.

What has rules is changed through the actions of this app, whose refusals become pages; a stored
key is never shown.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from accounts.actions.members import change_role, remove_member
from accounts.actions.provider_keys import check_provider_key, store_provider_key
from accounts.departures import stop_work_everywhere
from accounts.models import Invitation, Membership, Organisation, ProviderKey, Scope, User
from accounts.requests import actor_of
from accounts.tokenadmin import ApiTokenAdmin
from harness.errors import Invalid

__all__ = ["ApiTokenAdmin"]

admin.site.unregister(Group)


_POWERS = ["is_staff", "is_superuser", "groups", "user_permissions"]
"""What only a superuser hands out: whoever may grant it to others may grant it to themselves."""


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ["username", "email", "is_active", "is_staff", "is_superuser", "last_login"]
    readonly_fields = ["uid", "last_login", "date_joined"]
    fieldsets = [
        (None, {"fields": ["username", "password", "uid"]}),
        (_("Person"), {"fields": ["first_name", "last_name", "email"]}),
        (_("Access"), {"fields": ["is_active", "is_staff", "is_superuser", "user_permissions"]}),
        (_("Times"), {"fields": ["last_login", "date_joined"]}),
    ]
    add_fieldsets = [
        (None, {"fields": ["username", "email", "usable_password", "password1", "password2"]}),
    ]
    filter_horizontal = ["user_permissions"]
    list_filter = ["kind", "is_active", "is_staff", "is_superuser"]

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return fields if actor_of(request).is_superuser else [*fields, *_POWERS]

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        if "is_active" in form.changed_data and not obj.is_active:
            stop_work_everywhere(user=obj)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Asked for the page of the password too."""
        return _may_touch(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return _may_touch(request, obj) and super().has_delete_permission(request, obj)


@admin.register(Organisation)
class OrganisationAdmin(ModelAdmin):
    list_display = ["name", "slug", "created_at"]
    search_fields = ["name", "slug", "uid"]
    readonly_fields = ["uid", "personal_of", "created_at"]
    fields = ["name", "slug", "uid", "personal_of", "created_at"]


@admin.register(Membership)
class MembershipAdmin(ModelAdmin):
    list_display = ["user", "organisation", "role", "created_at"]
    list_filter = ["role"]
    list_select_related = ["user", "organisation"]
    search_fields = ["user__username", "user__email", "organisation__name"]
    autocomplete_fields = ["user", "organisation"]
    fields = ["user", "organisation", "role"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["user", "organisation"] if obj else []

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        if not change:
            super().save_model(request, obj, form, change)
            return
        change_role(actor=actor_of(request), membership=obj, role=obj.role)

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        remove_member(actor=actor_of(request), membership=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        with transaction.atomic():
            for membership in queryset:
                remove_member(actor=actor_of(request), membership=membership)


@admin.register(Invitation)
class InvitationAdmin(ModelAdmin):
    """Read and withdraw; inviting shows a link once, which the organisation page does."""

    list_display = ["email", "organisation", "role", "invited_by", "expires_at", "accepted_at"]
    list_select_related = ["organisation", "invited_by"]
    search_fields = ["email", "organisation__name"]
    fields = readonly_fields = [
        "uid",
        "email",
        "organisation",
        "role",
        "invited_by",
        "created_at",
        "expires_at",
        "accepted_at",
    ]

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False


class ProviderKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    base_url = forms.CharField(
        label=_("Base URL"), required=False, max_length=500, widget=UnfoldAdminTextInputWidget()
    )
    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=500,
        widget=UnfoldAdminPasswordWidget(render_value=False, attrs={"autocomplete": "off"}),
        help_text=_("Stored sealed and never shown; typed again for every change."),
    )

    class Meta:
        model = ProviderKey
        fields = ["provider", "base_url"]

    def clean(self) -> dict[str, Any]:
        """The action's own rules, so that its refusal stands beside the field."""
        cleaned = super().clean() or {}
        provider = cleaned.get("provider") or self.instance.provider
        try:
            check_provider_key(
                scope=Scope.DEPLOYMENT,
                provider=provider,
                key=cleaned.get("key", ""),
                base_url=cleaned.get("base_url", ""),
            )
        except Invalid as error:
            text = f"{error.message} {error.hint}".strip()
            self.add_error(error.field if error.field in self.fields else None, text)
        return cleaned


@admin.register(ProviderKey)
class ProviderKeyAdmin(ModelAdmin):
    """All keys by their last four characters; only those of the whole server are set here."""

    form = ProviderKeyForm
    list_display = ["provider", "get_scope_label", "organisation", "user", "ending", "updated_at"]
    list_select_related = ["organisation", "user"]
    search_fields = ["provider", "organisation__name", "user__username"]

    @admin.display(description=_("key"))
    def ending(self, obj: ProviderKey) -> str:
        return f"…{obj.last_four}" if obj.last_four else "–"

    def get_fields(self, request: HttpRequest, obj: ProviderKey | None = None) -> list[str]:
        shown = ["uid", "organisation", "user", "ending", "created_by", "created_at", "updated_at"]
        fields = ["provider", "base_url"]
        if self.has_change_permission(request, obj):
            fields.append("key")
        return [*fields, *shown] if obj else fields

    def get_readonly_fields(
        self, request: HttpRequest, obj: ProviderKey | None = None
    ) -> list[str]:
        shown = ["uid", "organisation", "user", "ending", "created_by", "created_at", "updated_at"]
        return ["provider", *shown] if obj else shown

    def has_add_permission(self, request: HttpRequest) -> bool:
        return actor_of(request).is_superuser

    def has_change_permission(self, request: HttpRequest, obj: ProviderKey | None = None) -> bool:
        return actor_of(request).is_superuser and (obj is None or obj.scope == Scope.DEPLOYMENT)

    def save_model(self, request: HttpRequest, obj: ProviderKey, form: Any, change: bool) -> None:
        stored = store_provider_key(
            actor=actor_of(request),
            scope=Scope.DEPLOYMENT,
            provider=obj.provider,
            base_url=obj.base_url,
            key=form.cleaned_data["key"],
        )
        obj.pk = stored.pk


def _may_touch(request: HttpRequest, obj: User | None) -> bool:
    """Superusers are changed by superusers alone."""
    return obj is None or not obj.is_superuser or actor_of(request).is_superuser
