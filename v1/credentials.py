"""`/v1/vaults/{id}/credentials`: secrets go in, are replaced and forgotten; none comes out."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Literal

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from rest_framework.exceptions import MethodNotAllowed
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from accounts.api.request_ids import current_request_id
from accounts.persons import whose_place
from harness.errors import Conflict, NotFound
from jobs.connections import give_back
from jobs.turnstile import Turnstile
from vaults.actions import credentials as actions
from vaults.models import VaultCredential
from vaults.oauth import Verdict, validate
from wire.fieldnames import written
from wire.parameters import check_query

from .coroutines import caller_for, described_by, refused
from .credentialbodies import (
    CredentialCreate,
    CredentialShape,
    CredentialUpdate,
    VariableBody,
    credential_shape,
    refuse_variable,
)
from .door import ALWAYS, READ, Door, Shape, body_of, operation, refuse_nul
from .fieldnames import CREDENTIAL
from .paging import Page, describe, flag, page_of, paging
from .vaults import ARCHIVED_TOO, SECRETS, find_vault


def _names(auth: Any) -> Mapping[str, str]:
    """What the parts of a secret are called in a body of this kind."""
    oauth = auth is not None and auth.type == "mcp_oauth"
    return {**CREDENTIAL, "token": "auth.access_token"} if oauth else CREDENTIAL


class CredentialPage(Page[CredentialShape]):
    pass


class CredentialDeleted(Shape):
    type: Literal["vault_credential_deleted"] = "vault_credential_deleted"
    id: str


class HttpAnswer(Shape):
    status_code: int
    content_type: str
    body: str
    body_truncated: bool


class Probe(Shape):
    method: str
    http_response: HttpAnswer | None


class RefreshOutcome(Shape):
    status: Literal["succeeded", "failed", "connect_error", "no_refresh_token"]
    http_response: HttpAnswer | None


class Validation(Shape):
    type: Literal["vault_credential_validation"] = "vault_credential_validation"
    credential_id: str
    vault_id: str
    status: Literal["valid", "invalid", "unknown"]
    has_refresh_token: bool
    mcp_probe: Probe | None
    refresh: RefreshOutcome | None
    validated_at: datetime


def _shapes(rows: Sequence[VaultCredential]) -> list[dict[str, Any]]:
    return [credential_shape(row) for row in rows]


def find_credential(caller: Caller, vault_uid: str, uid: str) -> VaultCredential:
    rows = find_vault(caller, vault_uid).credentials.select_related("vault")
    row = rows.filter(uid=uid).first()
    if row is None:
        raise NotFound(_("There is no such credential."))
    return row


class Credentials(Door):
    scopes = {"GET": READ, "POST": SECRETS}

    @operation(
        "vaults_credentials_list",
        tag="vaults",
        response=CredentialPage,
        query=(*paging(), ARCHIVED_TOO),
        summary="List a vault's credentials, newest first",
    )
    def get(self, request: Request, uid: str) -> Response:
        query = request.query_params
        rows = find_vault(self.caller, uid).credentials.select_related("vault")
        if not flag(query, "include_archived"):
            rows = rows.filter(archived_at=None)
        about = describe(f"credentials of {uid}", query)
        return Response(page_of(rows, query, about=about, show=_shapes))

    @operation(
        "vaults_credentials_create",
        tag="vaults",
        request=CredentialCreate,
        response=CredentialShape,
        summary="Store a secret for one service",
    )
    @sensitive_variables()
    def post(self, request: Request, uid: str) -> Response:
        vault = find_vault(self.caller, uid)
        body = body_of(request, CredentialCreate)
        if isinstance(body.auth, VariableBody):
            raise refuse_variable()
        with written(_names(body.auth)):
            row = actions.create_credential(
                actor=self.caller.user,
                vault=vault,
                auth=body.auth.value(),
                display_name=body.display_name or "",
                metadata=body.metadata,
            )
        return Response(credential_shape(row))


class OneCredential(Door):
    scopes = {"GET": READ, "POST": SECRETS, "DELETE": SECRETS}

    @operation(
        "vaults_credentials_retrieve",
        tag="vaults",
        response=CredentialShape,
        summary="Read about a credential",
    )
    def get(self, request: Request, uid: str, credential: str) -> Response:
        return Response(credential_shape(find_credential(self.caller, uid, credential)))

    @operation(
        "vaults_credentials_update",
        tag="vaults",
        request=CredentialUpdate,
        response=CredentialShape,
        summary="Replace a secret, or change its name and metadata",
    )
    @sensitive_variables()
    def post(self, request: Request, uid: str, credential: str) -> Response:
        row = find_credential(self.caller, uid, credential)
        body = body_of(request, CredentialUpdate)
        if isinstance(body.auth, VariableBody):
            raise refuse_variable()
        named = "display_name" in body.model_fields_set
        with written(_names(body.auth)):
            row = actions.change_credential(
                actor=self.caller.user,
                credential=row,
                auth=body.auth.value() if body.auth else None,
                display_name=(body.display_name or "") if named else None,
                metadata=body.metadata,
            )
        return Response(credential_shape(row))

    @operation(
        "vaults_credentials_delete",
        tag="vaults",
        response=CredentialDeleted,
        summary="Delete a credential with its record",
    )
    def delete(self, request: Request, uid: str, credential: str) -> Response:
        row = find_credential(self.caller, uid, credential)
        actions.delete_credential(actor=self.caller.user, credential=row)
        return Response(CredentialDeleted(id=credential).wire())


class ArchiveCredential(Door):
    scopes = {"POST": SECRETS}

    @operation(
        "vaults_credentials_archive",
        tag="vaults",
        response=CredentialShape,
        summary="Archive a credential: its secret is forgotten, its record stays",
    )
    def post(self, request: Request, uid: str, credential: str) -> Response:
        row = find_credential(self.caller, uid, credential)
        row = actions.archive_credential(actor=self.caller.user, credential=row)
        return Response(credential_shape(row))


class ValidateCredential(Door):
    """Only described here; `validate_credential` answers."""

    scopes = {"POST": SECRETS}

    @operation(
        "vaults_credentials_mcp_oauth_validate",
        tag="vaults",
        response=Validation,
        summary="Try whether an MCP server takes the token; one that is refused is renewed once",
    )
    def post(self, request: Request, uid: str, credential: str) -> None:
        """Try whether an MCP server takes the token; one that is refused is renewed once."""


AT_ONCE = 20
"""Tries in one process: each keeps a connection to somebody else's server for a minute at worst."""
_tries = Turnstile(AT_ONCE)
_under_way: set[asyncio.Task[Verdict]] = set()


async def _validate(request: HttpRequest, uid: str, credential: str) -> HttpResponseBase:
    try:
        if request.method != "POST":
            raise MethodNotAllowed(str(request.method))
        row, who = await sync_to_async(_to_try)(request, uid, credential)
        trying = asyncio.ensure_future(_tried(row.pk, who))
        _under_way.add(trying)
        trying.add_done_callback(_under_way.discard)
        # A client that goes away breaks no exchange off: the new token would be lost with it.
        verdict = await asyncio.shield(trying)
    except Exception as error:
        return refused(error)
    answer = JsonResponse(_validation(row, verdict))
    answer["request-id"] = current_request_id()
    return answer


async def _tried(credential_id: int, who: Hashable) -> Verdict:
    with _tries.place(who):
        return await validate(credential_id)


def _to_try(request: HttpRequest, uid: str, credential: str) -> tuple[VaultCredential, Hashable]:
    try:
        caller = caller_for(request, SECRETS, writes=True)
        refuse_nul(request)
        check_query(ValidateCredential, "POST", request.GET, ALWAYS)
        row = find_credential(caller, uid, credential)
        if row.archived_at is not None:
            raise Conflict(
                _("This credential is archived; its secret is gone."), hint=_("Store a new one.")
            )
        return row, whose_place(caller.user)
    finally:
        # Somebody else's server may take its time; the connection of this thread is given back now.
        give_back()


def _validation(row: VaultCredential, verdict: Verdict) -> dict[str, Any]:
    answered = asdict(verdict.answered) if verdict.answered else None
    refreshed = verdict.refreshed
    return Validation(
        credential_id=row.uid,
        vault_id=row.vault.uid,
        status=verdict.status,
        has_refresh_token=bool(row.details.get("refresh")),
        mcp_probe=Probe(
            method=verdict.failed_step,
            http_response=HttpAnswer(**answered) if answered else None,
        )
        if verdict.failed_step
        else None,
        refresh=RefreshOutcome(
            status=refreshed.status,
            http_response=HttpAnswer(**asdict(refreshed.answered)) if refreshed.answered else None,
        )
        if refreshed
        else None,
        validated_at=verdict.at,
    ).wire()


validate_credential = described_by(ValidateCredential, _validate)
