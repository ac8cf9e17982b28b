"""The forms of the vaults' pages. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .auth import ChangedAuth, NewAuth, Secrets
from .models import VaultCredential


def _secret_field(label: Any, help_text: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        help_text=help_text,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off"}),
    )


class VaultForm(OurForm):
    display_name = forms.CharField(
        label=_("Name"), help_text=_("What its secrets are for; only for you.")
    )


class CredentialForm(OurForm):
    """A token for one service. Longer and wrong values are refused by the action, which names the
    rule."""

    mcp_server_url = forms.CharField(
        label=_("Address of the service"),
        widget=forms.URLInput(
            attrs={"placeholder": "https://api.example.org/team", "autocomplete": "off"}
        ),
        help_text=_("The token goes to this address and to what lies below it, nowhere else."),
    )
    token = _secret_field(_("Token"), _("Stored sealed and never shown again."))
    display_name = forms.CharField(label=_("Name"), required=False)

    def values(self) -> dict[str, Any]:
        """As the action takes them."""
        auth = NewAuth(
            VaultCredential.Kind.STATIC_BEARER,
            self.cleaned_data["mcp_server_url"],
            Secrets(token=self.cleaned_data["token"]),
        )
        return {"auth": auth, "display_name": self.cleaned_data["display_name"]}


class ReplacementForm(OurForm):
    token = _secret_field(_("New token"), _("It counts from the next request on."))

    def auth(self, kind: str) -> ChangedAuth:
        return ChangedAuth(kind, token=self.cleaned_data["token"])
