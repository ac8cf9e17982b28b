"""The staff's view of API tokens: all of them by the beginning of their secret, to be ended by operators.

Made here are one's own and those of service accounts; nobody, staff included, makes a token that
speaks for another person. A new secret is in the answer to its form alone.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from unfold.admin import ModelAdmin
from unfold.decorators import action
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from accounts.actions.tokens import IssuedToken, create_token, revoke_token, rotate_token
from accounts.administration.requests import actor_of
from accounts.formwords import OurModelForm
from accounts.models import ApiToken, TokenScope, User
from accounts.secretpages import MakesSecrets, require_recent
from harness.errors import AgentError, Conflict, Invalid


class ApiTokenForm(OurModelForm):
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=TokenScope.choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
    )

    class Meta:
        model = ApiToken
        fields = ["name", "organisation", "user", "scopes", "expiry"]

    issued: IssuedToken | None = None

    def clean(self) -> dict[str, Any]:
        """Makes the token, so that a refusal stands beside its field."""
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        try:
            self.issued = create_token(
                actor=self.actor,
                organisation=cleaned["organisation"],
                user=cleaned["user"],
                name=cleaned["name"],
                scopes=cleaned["scopes"],
                expires_at=cleaned["expiry"],
            )
        except AgentError as error:
            field = error.field if isinstance(error, Invalid) else ""
            field = {"expires_at": "expiry"}.get(field, field)
            text = error.words
            self.add_error(field if field in self.fields else None, text)
        return cleaned

    actor: User


@admin.register(ApiToken)
class ApiTokenAdmin(MakesSecrets, ModelAdmin):
    form = ApiTokenForm
    list_display = ["name", "beginning", "user", "organisation", "expiry", "last_used_at", "valid"]
    list_select_related = ["user", "organisation"]
    list_filter = ["user__kind"]
    search_fields = ["name", "user__username", "organisation__name", "=token_key"]
    actions = ["revoke"]
    actions_detail = ["replace"]
    _SHOWN = [
        "uid",
        "name",
        "beginning",
        "user",
        "organisation",
        "scopes",
        "audience",
        "created_by",
        "created",
        "expiry",
        "last_used_at",
        "revoked_at",
        "day_requests",
    ]

    @admin.display(description=_("begins with"))
    def beginning(self, obj: ApiToken) -> str:
        return obj.shown_prefix

    @admin.display(description=_("valid"), boolean=True)
    def valid(self, obj: ApiToken) -> bool:
        return obj.is_valid

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> list[str]:
        return self._SHOWN if obj else ApiTokenForm.Meta.fields

    def get_readonly_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> list[str]:
        return self._SHOWN if obj else []

    def get_form(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        form = super().get_form(request, obj, **options)
        form.actor = actor_of(request)
        return form

    def formfield_for_foreignkey(self, field: Any, request: HttpRequest, **options: Any) -> Any:
        if field.name == "user":
            own = Q(pk=actor_of(request).pk)
            options["queryset"] = User.objects.filter(own | Q(kind=User.Kind.SERVICE))
        return super().formfield_for_foreignkey(field, request, **options)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return actor_of(request).is_superuser

    def has_change_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ApiToken | None = None) -> bool:
        return False

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return actor_of(request).is_superuser

    def has_replace_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        if not actor_of(request).is_superuser:
            return False
        mine = ApiToken.objects.filter(
            Q(user=actor_of(request)) | Q(user__kind=User.Kind.SERVICE), pk=object_id, audience=""
        )
        return mine.exists()

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> ApiToken:
        return self._issued(form).token

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Nothing is left to do: the form made it, through the action."""

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        return self._secret_page(request, obj, obj.secret)  # type: ignore[attr-defined]

    @admin.action(description=_("Revoke"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        chosen = list(tokens)
        for token in chosen:
            revoke_token(actor=actor_of(request), token=token)
        message = ngettext("%(count)d token revoked.", "%(count)d tokens revoked.", len(chosen))
        messages.success(request, message % {"count": len(chosen)})

    @action(description=_("Replace the secret"), icon="key", permissions=["replace"])  # type: ignore[untyped-decorator]
    def replace(self, request: HttpRequest, object_id: str) -> HttpResponse:
        token = self.get_object(request, object_id)
        if token is None:
            raise Http404
        if request.method != "POST":
            return self._secret_page(request, token, "")
        require_recent(request)
        try:
            issued = rotate_token(actor=actor_of(request), token=token)
        except Conflict as error:
            messages.error(request, error.words)
            return self._secret_page(request, token, "")
        return self._secret_page(request, issued.token, issued.secret)

    def _issued(self, form: ApiTokenForm) -> IssuedToken:
        assert form.issued is not None  # noqa: S101 - the form is valid
        form.issued.token.secret = form.issued.secret  # type: ignore[attr-defined]
        form.save_m2m = lambda: None  # type: ignore[method-assign]
        return form.issued

    def _secret_page(self, request: HttpRequest, token: ApiToken, secret: str) -> HttpResponse:
        """Shows the secret, or asks whether to replace it."""
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "title": gettext("Secret of “%(name)s”") % {"name": token.name},
            "opts": self.opts,
            "token": token,
            "secret": secret,
        }
        answer = render(request, "admin/accounts/token_secret.html", context)
        answer["Cache-Control"] = "no-store"
        return answer
