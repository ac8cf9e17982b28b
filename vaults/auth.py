"""What a credential holds: the part that may be shown, and the secrets, which are sealed as one text.

Rules about its values are here; who may store them is `actions.credentials`' question, and what they
are used for `bearers`' and `oauth`'s.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from pydantic import BaseModel, ConfigDict, Field

from accounts import vault
from harness.errors import Conflict, Invalid, TooLarge
from tools_app.web.credentials import one_spelling
from webhooks.addresses import check_url

from .models import VaultCredential

URL_LIMIT = 500
SECRET_LEAST, SECRET_MOST = 8, 8_192
"""Characters. A shorter one could not be told apart in what a server answers."""
TEXT_LIMIT = 2_000
LEEWAY = timedelta(seconds=60)
"""So long before its end an access token counts as over."""

ClientAuth = Literal["none", "client_secret_basic", "client_secret_post"]


class Refresh(BaseModel):
    """How a new access token is had. Nothing in it is secret."""

    model_config = ConfigDict(frozen=True)

    token_endpoint: str
    client_id: str
    client_auth: ClientAuth
    scope: str | None = None
    resource: str | None = None
    of_mcp_server: bool = False
    """Found and judged while a person connected an MCP server (`mcpservers`), whose rules for addresses hold
    for the endpoint in place of those of webhooks."""


class Details(BaseModel):
    """What of a credential may be shown beside its address."""

    model_config = ConfigDict(frozen=True)

    expires_at: datetime | None = None
    refresh: Refresh | None = None

    def is_over(self) -> bool:
        return self.expires_at is not None and self.expires_at - LEEWAY <= timezone.now()


class Secrets(BaseModel):
    """Hold it briefly; never store, log or show it."""

    model_config = ConfigDict(frozen=True)

    token: str = Field(repr=False)
    refresh_token: str = Field(default="", repr=False)
    client_secret: str = Field(default="", repr=False)

    def hidden_in(self, text: str, instead: str) -> str:
        """`text` without any of them."""
        for secret in (self.token, self.refresh_token, self.client_secret):
            text = text.replace(secret, instead) if secret else text
        return text


@dataclass(frozen=True, slots=True)
class NewAuth:
    """A credential as somebody gives it."""

    kind: VaultCredential.Kind
    url: str
    secrets: Secrets
    details: Details = Details()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class ChangedAuth:
    """What somebody gives anew; None: as it was. Kind and address never change."""

    kind: str
    token: str | None = field(default=None, repr=False)
    expires_at: datetime | None = None
    refresh_token: str | None = field(default=None, repr=False)
    scope: str | None = None
    """Empty: none any more."""
    client_secret: str | None = field(default=None, repr=False)

    @property
    def touches_refresh(self) -> bool:
        return not (self.refresh_token is self.scope is self.client_secret is None)


def details_of(row: VaultCredential) -> Details:
    return Details.model_validate(row.details)


@sensitive_variables("secrets")
def sealed(secrets: Secrets) -> str:
    """Raises NotConfigured on a server without a vault key."""
    return vault.seal(secrets.model_dump_json())


def secrets_of(row: VaultCredential) -> Secrets:
    """Raises NotConfigured if none of the vault keys opens them, Conflict if there are none."""
    if not row.sealed:
        raise Conflict(
            _("This credential is archived; its secret is gone."), hint=_("Store a new one.")
        )
    return Secrets.model_validate_json(vault.open_sealed(row.sealed))


def reseal_credentials() -> int:
    """Seal what every credential keeps under the first vault key; how many. In the caller's
    transaction."""
    count = 0
    for row in VaultCredential.objects.exclude(sealed="").select_for_update():
        row.sealed = vault.reseal(row.sealed)
        row.save(update_fields=["sealed"])
        count += 1
    return count


def check_new(auth: NewAuth) -> tuple[NewAuth, str]:
    """`auth` tidied up, and its address in one spelling. Raises Invalid and TooLarge, naming the field
    and never repeating a secret."""
    url = auth.url.strip()
    if len(url) > URL_LIMIT:
        raise TooLarge(
            _("The address is longer than %(limit)d characters.") % {"limit": URL_LIMIT},
            field="mcp_server_url",
            hint=_("Shorten it."),
        )
    try:
        key = one_spelling(url)
    except (ValueError, UnicodeError):
        raise Invalid(
            _("This is not the address of a service."),
            field="mcp_server_url",
            hint=_("Type it like https://mcp.example.org/team, without a user or fragment."),
        ) from None
    refresh = auth.details.refresh
    _check_secret(auth.secrets.token, "token")
    _check_expiry(auth.details.expires_at)
    if refresh is not None:
        _check_secret(auth.secrets.refresh_token, "refresh_token")
        if refresh.client_auth != "none":
            _check_secret(auth.secrets.client_secret, "client_secret", least=1)
        _check_text(refresh.client_id, "client_id", least=1)
        _check_text(refresh.scope or "", "scope")
        _check_text(refresh.resource or "", "resource")
        if not refresh.of_mcp_server:
            endpoint = _endpoint(refresh.token_endpoint)
            refresh = refresh.model_copy(update={"token_endpoint": endpoint})
    details = auth.details.model_copy(update={"refresh": refresh})
    return NewAuth(auth.kind, url, auth.secrets, details), key


def changed(row: VaultCredential, change: ChangedAuth) -> tuple[Secrets, Details]:
    """What `row` holds after `change`. Raises Invalid and TooLarge as `check_new`."""
    if change.kind != row.kind:
        raise Invalid(
            _("The kind of a credential never changes; this one is “%(kind)s”.")
            % {"kind": row.kind},
            field="auth.type",
            hint=_("Store a new credential."),
        )
    secrets, details = secrets_of(row), details_of(row)
    refresh = details.refresh
    if change.token is not None:
        _check_secret(change.token, "token")
        secrets = secrets.model_copy(update={"token": change.token})
    if change.expires_at is not None:
        _check_expiry(change.expires_at)
        details = details.model_copy(update={"expires_at": change.expires_at})
    if not change.touches_refresh:
        return secrets, details
    if refresh is None:
        raise Invalid(
            _("This credential was stored without a refresh token."),
            field="auth.refresh",
            hint=_("Store a new credential with one."),
        )
    if change.refresh_token is not None:
        _check_secret(change.refresh_token, "refresh_token")
        secrets = secrets.model_copy(update={"refresh_token": change.refresh_token})
    if change.client_secret is not None:
        if refresh.client_auth == "none":
            raise Invalid(
                _("This credential was stored without a client secret."),
                field="auth.refresh.token_endpoint_auth",
                hint=_("Store a new credential with one."),
            )
        _check_secret(change.client_secret, "client_secret", least=1)
        secrets = secrets.model_copy(update={"client_secret": change.client_secret})
    if change.scope is not None:
        _check_text(change.scope, "scope")
        refresh = refresh.model_copy(update={"scope": change.scope or None})
    return secrets, details.model_copy(update={"refresh": refresh})


@sensitive_variables("secret")
def _check_secret(secret: str, field: str, *, least: int = SECRET_LEAST) -> None:
    if not least <= len(secret) <= SECRET_MOST:
        raise Invalid(
            _("It has %(least)d to %(most)d characters.") % {"least": least, "most": SECRET_MOST},
            field=field,
            hint=_("Paste the secret alone."),
        )
    if not all("!" <= character <= "~" for character in secret):
        raise Invalid(
            _("It holds a space or another character that such secrets do not have."),
            field=field,
            hint=_("Paste the secret alone, on one line."),
        )


def _check_text(text: str, field: str, *, least: int = 0) -> None:
    if not least <= len(text) <= TEXT_LIMIT or not text.isprintable():
        raise Invalid(
            _("It has %(least)d to %(most)d printable characters.")
            % {"least": least, "most": TEXT_LIMIT},
            field=field,
            hint=_("Send such a text on one line."),
        )


def _check_expiry(moment: datetime | None) -> None:
    if moment is not None and moment <= timezone.now():
        raise Invalid(
            _("The token is over already."), field="expires_at", hint=_("Give a time to come.")
        )


def _endpoint(url: str) -> str:
    """This server itself posts there, so the rules of webhooks hold for it."""
    try:
        return check_url(url)
    except Invalid as problem:
        raise type(problem)(problem.message, field="token_endpoint", hint=problem.hint) from None
