"""The sign-in form, with words that say what may be typed."""

from __future__ import annotations

from typing import Any

from allauth.account.forms import LoginForm as AllauthLoginForm
from django.utils.translation import gettext_lazy as _


class LoginForm(AllauthLoginForm):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        login = self.fields["login"]
        login.label = _("E-mail address or user name")
        login.widget.attrs.update({"autocomplete": "username", "placeholder": ""})
        self.fields["password"].widget.attrs["placeholder"] = ""
