"""The staff's view of people and organisations.

What has rules is changed through the actions of this app, whose refusals become pages; a stored
key is never shown.
"""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm as UnfoldPasswordForm
from unfold.forms import AuthenticationForm
from unfold.forms import UserChangeForm as UnfoldChangeForm
from unfold.forms import UserCreationForm as UnfoldCreationForm
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.actions.invitations import withdraw_invitation
from accounts.actions.members import add_member, change_role, remove_member
from accounts.actions.organisations import (
    create_organisation,
    delete_organisation,
    rename_organisation,
)
from accounts.actions.people import (
    IDENTITY,
    POWERS,
    delete_account,
    end_after_reset,
    may_change,
    save_account,
    take_sign_in_away,
)
from accounts.actions.provider_keys import (
    check_provider_key,
    remove_provider_key,
    store_provider_key,
)
from accounts.administration.readonly import ReadOnlyAdmin
from accounts.administration.requests import actor_of
from accounts.adminwrites import DeletesEach
from accounts.formwords import InOurWords, OurModelForm
from accounts.keytests import KeyTest, try_key
from accounts.models import Invitation, Membership, Organisation, ProviderKey, Scope, User
from accounts.secretpages import recent_before, require_recent
from accounts.tokenadmin import ApiTokenAdmin
from harness.errors import Invalid

__all__ = ["ApiTokenAdmin"]

for unused in (Group, SocialApp, SocialToken):
    admin.site.unregister(unused)


class OperatorsAlone(DeletesEach, ModelAdmin):
    """What somebody signs in with: whoever may change it for others can be them."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return actor_of(request).is_superuser

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return actor_of(request).is_superuser

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """So that somebody who lost her phone can sign in again."""
        return actor_of(request).is_superuser

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        require_recent(request)
        take_sign_in_away(actor=actor_of(request), means=obj)


for model, listed in (
    (EmailAddress, ["email", "user", "primary", "verified"]),
    (Authenticator, ["user", "type", "created_at", "last_used_at"]),
    (SocialAccount, ["user", "provider", "last_login"]),
):
    admin.site.unregister(model)
    admin.site.register(model, OperatorsAlone, list_display=listed, fields=listed)


class SignIns(ReadOnlyAdmin):
    """Who signed in or tried to, from where. What was typed meanwhile is not shown: it may be a password."""

    list_display = ["attempt_time", "username", "ip_address", "path_info"]
    search_fields = ["=username", "=ip_address"]
    fields = readonly_fields = [
        "attempt_time",
        "username",
        "ip_address",
        "user_agent",
        "path_info",
    ]


class FailedSignIns(SignIns):
    """What locks an account at one address for a while."""

    list_display = [*SignIns.list_display, "failures_since_start"]
    fields = readonly_fields = [*SignIns.fields, "failures_since_start"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """So that the operator lets somebody try again before its time."""
        return actor_of(request).is_superuser


for model, page in (
    (AccessAttempt, FailedSignIns),
    (AccessFailureLog, SignIns),
    (AccessLog, SignIns),
):
    admin.site.unregister(model)
    admin.site.register(model, page)


class UserChangeForm(InOurWords, UnfoldChangeForm):
    pass


class UserCreationForm(InOurWords, UnfoldCreationForm):
    pass


class AdminPasswordChangeForm(InOurWords, UnfoldPasswordForm):
    pass


class AdminLoginForm(InOurWords, AuthenticationForm):
    pass


admin.site.login_form = AdminLoginForm


@admin.register(User)
class UserAdmin(DeletesEach, DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]
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
        if actor_of(request).is_superuser:
            return fields
        return [*fields, *POWERS, *(("username", "email") if obj is not None else ())]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        answer: HttpResponse = recent_before(request) or super().add_view(
            request, form_url, extra_context
        )
        return answer

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        is_opened = obj.is_active and "is_active" in form.changed_data
        if change and (is_opened or {*POWERS, *IDENTITY} & set(form.changed_data)):
            require_recent(request)
        save_account(actor=actor_of(request), user=obj, changed=form.changed_data)

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        delete_account(actor=actor_of(request), user=obj)

    def user_change_password(
        self,
        request: HttpRequest,
        id: str,  # noqa: A002 - so Django calls it
        form_url: str = "",
    ) -> HttpResponse:
        if not actor_of(request).is_superuser:
            raise PermissionDenied
        if (asked := recent_before(request)) is not None:
            return asked
        with transaction.atomic():
            before = self.get_object(request, id)
            answer: HttpResponse = super().user_change_password(request, id, form_url)
            user = self.get_object(request, id)
            if before is None or user is None or user.password == before.password:
                return answer
            ended = end_after_reset(actor=actor_of(request), user=user)
        if ended:
            message = ngettext(
                "%(count)d token was revoked, since the password was set anew.",
                "%(count)d tokens were revoked, since the password was set anew.",
                ended,
            )
            messages.info(request, message % {"count": ended})
        return answer

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Asked for the page of the password too."""
        may = may_change(actor_of(request), obj)
        return may and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return actor_of(request).is_superuser and super().has_delete_permission(request, obj)


@admin.register(Organisation)
class OrganisationAdmin(DeletesEach, ModelAdmin):
    form = OurModelForm
    list_display = ["name", "slug", "created_at"]
    search_fields = ["name", "slug", "uid"]
    readonly_fields = ["slug", "uid", "personal_of", "created_at"]
    fields = ["name", "slug", "uid", "personal_of", "created_at"]

    def has_delete_permission(self, request: HttpRequest, obj: Organisation | None = None) -> bool:
        return actor_of(request).is_superuser

    def save_model(self, request: HttpRequest, obj: Organisation, form: Any, change: bool) -> None:
        if change:
            rename_organisation(
                actor=actor_of(request),
                organisation=Organisation.objects.get(pk=obj.pk),
                name=obj.name,
            )
        else:
            obj.pk = create_organisation(actor=actor_of(request), name=obj.name).pk

    def delete_model(self, request: HttpRequest, obj: Organisation) -> None:
        delete_organisation(actor=actor_of(request), organisation=obj)


@admin.register(Membership)
class MembershipAdmin(DeletesEach, ModelAdmin):
    form = OurModelForm
    list_display = ["user", "organisation", "role", "created_at"]
    list_filter = ["role"]
    list_select_related = ["user", "organisation"]
    search_fields = ["user__username", "user__email", "organisation__name"]
    autocomplete_fields = ["user", "organisation"]
    fields = ["user", "organisation", "role"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["user", "organisation"] if obj else []

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        actor = actor_of(request)
        if change:
            change_role(actor=actor, membership=obj, role=obj.role)
            return
        made = add_member(actor=actor, organisation=obj.organisation, user=obj.user, role=obj.role)
        obj.pk = made.pk

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        remove_member(actor=actor_of(request), membership=obj)


@admin.register(Invitation)
class InvitationAdmin(DeletesEach, ModelAdmin):
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

    def delete_model(self, request: HttpRequest, obj: Invitation) -> None:
        withdraw_invitation(actor=actor_of(request), invitation=obj)


class ProviderKeyForm(OurModelForm):
    tested: KeyTest | None = None
    """What the service said of the key; None: it was not asked."""

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
    keep = forms.BooleanField(
        label=_("Keep it although its test fails"),
        required=False,
        help_text=_("The service is asked for the list of its models before the key is stored."),
        widget=UnfoldBooleanSwitchWidget(),
    )

    class Meta:
        model = ProviderKey
        fields = ["provider", "base_url"]

    def clean(self) -> dict[str, Any]:
        """The action's own rules, so that its refusal stands beside the field."""
        cleaned = super().clean() or {}
        provider = cleaned.get("provider") or self.instance.provider
        try:
            provider, key, base_url = check_provider_key(
                scope=Scope.DEPLOYMENT,
                provider=provider,
                key=cleaned.get("key", ""),
                base_url=cleaned.get("base_url", ""),
            )
        except Invalid as error:
            text = error.words
            self.add_error(error.field if error.field in self.fields else None, text)
            return cleaned
        if not self.errors and not cleaned.get("keep"):
            self.tested = try_key(
                scope=Scope.DEPLOYMENT,
                provider=provider,
                key=key,
                base_url=base_url,
                who=Scope.DEPLOYMENT,
            )
            if self.tested.failed:
                hint = _("Correct it, or say below that it is to be kept, and type it again.")
                self.add_error("key", f"{self.tested.words} {hint}")
        return cleaned


@admin.register(ProviderKey)
class ProviderKeyAdmin(DeletesEach, ModelAdmin):
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
            fields += ["key", "keep"]
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
        if form.tested is not None:
            messages.info(request, form.tested.words)

    def delete_model(self, request: HttpRequest, obj: ProviderKey) -> None:
        remove_provider_key(actor=actor_of(request), provider_key=obj)
