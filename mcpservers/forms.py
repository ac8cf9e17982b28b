"""The forms of the pages of MCP servers. They shape input; the actions judge it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.formwords import OurForm

from .models import McpServer


class Secret(forms.CharField):
    """What was typed may hold tokens, and is never shown again, also where it is refused."""

    def prepare_value(self, value: Any) -> Any:
        return ""


class _Pairs(Secret):
    """A name and a value, one a line, with `sign` between them."""

    sign = ":"

    def __init__(self, label: Any, help_text: Any) -> None:
        super().__init__(
            label=label,
            required=False,
            widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
            help_text=help_text,
        )

    def clean(self, value: Any) -> Any:
        found: dict[str, str] = {}
        for line in str(super().clean(value) or "").splitlines():
            if line.strip():
                name, _sign, held = line.partition(self.sign)
                found[name.strip()] = held.strip()
        return found


class _Headers(_Pairs):
    def __init__(self) -> None:
        super().__init__(
            _("Headers that are sent along"),
            _(
                "One a line, such as “Authorization: Bearer …”. Stored sealed and never shown again."
            ),
        )


class _Variables(_Pairs):
    sign = "="

    def __init__(self) -> None:
        super().__init__(
            _("Variables that it finds"),
            _(
                "One a line, such as API_KEY=…. Stored sealed and never shown again; what has eight "
                "characters or more is cut out of what the server answers."
            ),
        )


class _Arguments(forms.CharField):
    """One a line, as it is."""

    def __init__(self) -> None:
        super().__init__(
            label=_("Arguments"),
            required=False,
            strip=False,
            widget=forms.Textarea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
            help_text=_("One a line. Others see them: no place for secrets."),
        )

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        return [line for line in str(super().clean(value) or "").splitlines() if line]


def _command() -> forms.CharField:
    return forms.CharField(
        label=_("Command"),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text=_(
            "A program of the environment, such as python3, that is started in the sandbox of each "
            "conversation that uses it, and sees its workspace."
        ),
    )


class ServerForm(OurForm):
    name = forms.CharField(
        label=_("Name"),
        help_text=_("Small letters, digits and hyphens. Rules address its tools as mcp:name:tool."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    url = forms.CharField(
        label=_("Address"),
        widget=forms.URLInput(
            attrs={"placeholder": "https://mcp.example.org/mcp", "autocomplete": "off"}
        ),
    )
    headers = _Headers()
    scope = forms.ChoiceField(label=_("Whose it is"), choices=McpServer.Scope.choices)
    timeout_seconds = forms.IntegerField(label=_("Seconds for one call"), initial=60)

    def __init__(self, *args: Any, scopes: list[tuple[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["scope"].choices = scopes


class ProgramForm(OurForm):
    """A server that is started."""

    prefix = "program"
    name = forms.CharField(
        label=_("Name"),
        help_text=_("Small letters, digits and hyphens. Rules address its tools as mcp:name:tool."),
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    command = _command()
    arguments = _Arguments()
    variables = _Variables()
    scope = forms.ChoiceField(label=_("Whose it is"), choices=McpServer.Scope.choices)
    timeout_seconds = forms.IntegerField(label=_("Seconds for one call"), initial=60)

    def __init__(self, *args: Any, scopes: list[tuple[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["scope"].choices = scopes


class JsonForm(OurForm):
    prefix = "file"
    json = Secret(
        label=_("Text of an mcp.json"),
        widget=forms.Textarea(attrs={"rows": 6, "autocomplete": "off", "spellcheck": "false"}),
    )
    scope = forms.ChoiceField(label=_("Whose they are"), choices=McpServer.Scope.choices)

    def __init__(self, *args: Any, scopes: list[tuple[str, Any]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: Any = self.fields
        fields["scope"].choices = scopes


class ChangeForm(OurForm):
    url = forms.CharField(
        label=_("Address"),
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
        help_text=_(
            "At another address it is another server: its headers are forgotten, and its tools held "
            "until you have looked at them."
        ),
    )
    headers = _Headers()
    forget = forms.BooleanField(label=_("Forget the headers that are stored"), required=False)
    timeout_seconds = forms.IntegerField(label=_("Seconds for one call"))


class ProgramChangeForm(OurForm):
    command = _command()
    arguments = _Arguments()
    variables = _Variables()
    forget = forms.BooleanField(label=_("Forget the variables that are stored"), required=False)
    timeout_seconds = forms.IntegerField(label=_("Seconds for one call"))


class ClientForm(OurForm):
    prefix = "client"
    issuer = forms.CharField(
        label=_("Authorisation server"),
        help_text=_("Its issuer, such as https://login.example.org"),
        widget=forms.URLInput(attrs={"autocomplete": "off"}),
    )
    client_id = forms.CharField(
        label=_("Client id"), widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    client_secret = Secret(
        label=_("Client secret"),
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("If it has one. Stored sealed and never shown again."),
    )
