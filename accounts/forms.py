"""The forms of this app's pages. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Organisation, Role, Scope, User
from accounts.permissions import may_manage
from accounts.provider_keys import PROVIDERS
from harness.errors import AgentError, Conflict, Forbidden, Invalid, LimitReached, NotFound


def add_error(form: forms.Form, error: AgentError) -> None:
    """Show an action's refusal where the person typed, with its remedy; nothing typed is lost."""
    text = error.words
    field = error.field if isinstance(error, Invalid) and error.field in form.fields else None
    form.add_error(field, text)


def refuse(form: forms.Form, error: AgentError) -> int:
    """Show it in the form, and return the status of the page that shows this: 409 where what is there stands
    against it, else 422. Raises what no other input would mend: NotFound and Forbidden."""
    if isinstance(error, NotFound | Forbidden):
        raise error
    add_error(form, error)
    return 409 if isinstance(error, Conflict | LimitReached) else 422


class InvitationForm(OurForm):
    email = forms.EmailField(label=_("E-mail address"), max_length=254)
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.MEMBER)

    def __init__(self, *args: Any, own_role: Role, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        role = self.fields["role"]
        assert isinstance(role, forms.ChoiceField)  # noqa: S101 - declared above
        role.choices = [(one.value, one.label) for one in Role if own_role.may_grant(one)]


class OrganisationForm(OurForm):
    name = forms.CharField(label=_("Name"), max_length=120)


class ProviderKeyForm(OurForm):
    provider = forms.ChoiceField(label=_("Provider"), choices=list(PROVIDERS.items()))
    base_url = forms.CharField(
        label=_("Base URL"),
        required=False,
        max_length=500,
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
        help_text=_("Leave empty for the provider's own service."),
    )
    key = forms.CharField(
        label=_("Key"),
        required=False,
        max_length=500,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off"}),
        help_text=_("Stored sealed and never shown again. Some local servers need none."),
    )
    scope = forms.ChoiceField(label=_("For whom"), initial=Scope.USER)

    def __init__(self, *args: Any, user: User, organisation: Organisation, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes: list[tuple[str, Any]] = [(Scope.USER.value, Scope.USER.label)]
        if may_manage(user, organisation):
            label = _("Everybody in %(organisation)s") % {"organisation": organisation}
            scopes.append((Scope.ORGANISATION.value, label))
        if user.is_superuser:
            scopes.append((Scope.DEPLOYMENT.value, Scope.DEPLOYMENT.label))
        scope = self.fields["scope"]
        assert isinstance(scope, forms.ChoiceField)  # noqa: S101 - declared above
        scope.choices = scopes


class SetupForm(OurForm):
    organisation_name = forms.CharField(
        label=_("Organisation"),
        max_length=120,
        help_text=_("The people you will work with. It can be renamed later."),
    )
    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "username"}),
    )
    email = forms.EmailField(
        label=_("E-mail address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )
    password = forms.CharField(
        label=_("Password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("At least eight characters, and not a common word."),
    )
