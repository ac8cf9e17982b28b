"""What clients send about a credential, and what they are shown: never a secret.

On this wire a bearer token and an OAuth access token belong to the address of an MCP server; here that
address is a service's, whatever it speaks.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.utils.translation import gettext as _
from pydantic import Field

from harness.errors import Invalid
from vaults.auth import ChangedAuth, ClientAuth, Details, NewAuth, Refresh, Secrets, details_of
from vaults.models import VaultCredential

from .door import Body, Shape
from .metadata import Metadata, MetadataPatch
from .moments import Moment

# --- sent by clients ------------------------------------------------------------------------------


class NoClientAuth(Body):
    type: Literal["none"]


class SecretClientAuth(Body):
    type: Literal["client_secret_basic", "client_secret_post"]
    client_secret: str = Field(repr=False)


class ChangedClientAuth(Body):
    type: Literal["client_secret_basic", "client_secret_post"]
    client_secret: str | None = Field(default=None, repr=False)


class RefreshBody(Body):
    token_endpoint: str
    client_id: str
    refresh_token: str = Field(repr=False)
    token_endpoint_auth: Annotated[NoClientAuth | SecretClientAuth, Field(discriminator="type")]
    scope: str | None = None
    resource: str | None = None


class ChangedRefresh(Body):
    refresh_token: str | None = Field(default=None, repr=False)
    scope: str | None = None
    token_endpoint_auth: ChangedClientAuth | None = None


class BearerBody(Body):
    type: Literal["static_bearer"]
    mcp_server_url: str
    token: str = Field(repr=False)

    def value(self) -> NewAuth:
        kind = VaultCredential.Kind.STATIC_BEARER
        return NewAuth(kind, self.mcp_server_url, Secrets(token=self.token))


class OAuthBody(Body):
    type: Literal["mcp_oauth"]
    mcp_server_url: str
    access_token: str = Field(repr=False)
    expires_at: Moment | None = None
    refresh: RefreshBody | None = None

    def value(self) -> NewAuth:
        kind, given = VaultCredential.Kind.MCP_OAUTH, self.refresh
        if given is None:
            details = Details(expires_at=self.expires_at)
            return NewAuth(kind, self.mcp_server_url, Secrets(token=self.access_token), details)
        client = given.token_endpoint_auth
        return NewAuth(
            kind,
            self.mcp_server_url,
            Secrets(
                token=self.access_token,
                refresh_token=given.refresh_token,
                client_secret=client.client_secret if isinstance(client, SecretClientAuth) else "",
            ),
            Details(
                expires_at=self.expires_at,
                refresh=Refresh(
                    token_endpoint=given.token_endpoint,
                    client_id=given.client_id,
                    client_auth=client.type,
                    scope=given.scope or None,
                    resource=given.resource or None,
                ),
            ),
        )


class VariableBody(Body):
    """Known, so that the refusal can say why."""

    type: Literal["environment_variable"]
    secret_name: str = ""
    secret_value: str | None = Field(default=None, repr=False)
    networking: Any = None
    injection_location: Any = None


class ChangedBearer(Body):
    type: Literal["static_bearer"]
    token: str | None = Field(default=None, repr=False)

    def value(self) -> ChangedAuth:
        return ChangedAuth(self.type, token=self.token)


class ChangedOAuth(Body):
    type: Literal["mcp_oauth"]
    access_token: str | None = Field(default=None, repr=False)
    expires_at: Moment | None = None
    refresh: ChangedRefresh | None = None

    def value(self) -> ChangedAuth:
        given = self.refresh or ChangedRefresh()
        client = given.token_endpoint_auth
        return ChangedAuth(
            self.type,
            token=self.access_token,
            expires_at=self.expires_at,
            refresh_token=given.refresh_token,
            scope=given.scope,
            client_secret=client.client_secret if client else None,
        )


class CredentialCreate(Body):
    auth: Annotated[BearerBody | OAuthBody | VariableBody, Field(discriminator="type")]
    display_name: str | None = None
    metadata: Metadata = {}


class CredentialUpdate(Body):
    auth: (
        Annotated[ChangedBearer | ChangedOAuth | VariableBody, Field(discriminator="type")] | None
    ) = None
    display_name: str | None = None
    metadata: MetadataPatch | None = None


def refuse_variable() -> Invalid:
    """Commands get no secrets, not even through their proxy: it does not look into encrypted
    connections, so it could put nothing in."""
    return Invalid(
        _("This server hands no secret to a sandbox, so a variable would stay without its value."),
        field="auth.type",
        hint=_("Store it as static_bearer for the address of the service; web_fetch uses it."),
    )


# --- shown to clients -----------------------------------------------------------------------------


class ClientAuthShape(Shape):
    type: ClientAuth


class RefreshShape(Shape):
    token_endpoint: str
    client_id: str
    token_endpoint_auth: ClientAuthShape
    scope: str | None
    resource: str | None


class BearerShape(Shape):
    type: Literal["static_bearer"] = "static_bearer"
    mcp_server_url: str


class OAuthShape(Shape):
    type: Literal["mcp_oauth"] = "mcp_oauth"
    mcp_server_url: str
    expires_at: datetime | None
    refresh: RefreshShape | None


class CredentialShape(Shape):
    type: Literal["vault_credential"] = "vault_credential"
    id: str
    vault_id: str
    display_name: str | None
    auth: Annotated[BearerShape | OAuthShape, Field(discriminator="type")]
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    x_last_used_at: datetime | None


def credential_shape(row: VaultCredential) -> dict[str, Any]:
    return CredentialShape(
        id=row.uid,
        vault_id=row.vault.uid,
        display_name=row.display_name or None,
        auth=_auth(row),
        metadata=row.metadata,
        created_at=row.created_at,
        updated_at=row.updated_at,
        archived_at=row.archived_at,
        x_last_used_at=row.last_used_at,
    ).wire()


def _auth(row: VaultCredential) -> BearerShape | OAuthShape:
    if row.kind == VaultCredential.Kind.STATIC_BEARER:
        return BearerShape(mcp_server_url=row.url)
    details = details_of(row)
    refresh = details.refresh
    return OAuthShape(
        mcp_server_url=row.url,
        expires_at=details.expires_at,
        refresh=RefreshShape(
            token_endpoint=refresh.token_endpoint,
            client_id=refresh.client_id,
            token_endpoint_auth=ClientAuthShape(type=refresh.client_auth),
            scope=refresh.scope,
            resource=refresh.resource,
        )
        if refresh
        else None,
    )
