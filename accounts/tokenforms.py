"""The forms of the page of tokens, also used by the admin. They shape input; the actions judge it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm
from accounts.models import Role, TokenScope, User

LIFETIMES = [
    ("30", _("30 days")),
    ("90", _("90 days")),
    ("365", _("One year")),
    ("", _("Never")),
]


class TokenForm(OurForm):
    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("Which program will use it.")
    )
    scopes = forms.MultipleChoiceField(
        label=_("What it may be used for"),
        widget=forms.CheckboxSelectMultiple,
        initial=[TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE],
    )
    lifetime = forms.ChoiceField(
        label=_("Expires after"), choices=LIFETIMES, initial="90", required=False
    )
    account = forms.ChoiceField(label=_("For whom"), required=False)

    def __init__(self, *args: Any, accounts: Sequence[User], manages: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._accounts = {account.uid: account for account in accounts}
        scopes, account = self.fields["scopes"], self.fields["account"]
        assert isinstance(scopes, forms.MultipleChoiceField)  # noqa: S101 - declared above
        assert isinstance(account, forms.ChoiceField)  # noqa: S101 - declared above
        scopes.choices = [
            (scope.value, scope.label)
            for scope in TokenScope
            if manages or scope is not TokenScope.ADMIN
        ]
        account.choices = [("", _("Myself")), *((one.uid, str(one)) for one in accounts)]
        if not accounts:
            del self.fields["account"]

    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["lifetime"]
        return timezone.now() + timedelta(days=int(days)) if days else None

    def holder(self) -> User | None:
        """The chosen service account; None for oneself."""
        return self._accounts.get(self.cleaned_data.get("account", ""))


class RotationForm(OurForm):
    hours = forms.ChoiceField(
        label=_("The present secret"),
        choices=[
            ("0", _("Present secret ends now")),
            ("24", _("Present secret ends in a day")),
            ("168", _("Present secret ends in a week")),
        ],
    )

    def overlap(self) -> timedelta:
        return timedelta(hours=int(self.cleaned_data["hours"]))


class ServiceAccountForm(OurForm):
    name = forms.CharField(label=_("Name"), max_length=80)
    role = forms.ChoiceField(
        label=_("Role"),
        choices=[(role.value, role.label) for role in Role if role is not Role.OWNER],
        initial=Role.MEMBER,
    )
