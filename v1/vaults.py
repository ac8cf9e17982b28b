"""`/v1/vaults`: a person's vaults. What lies in them is `credentials`'."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.authentication import Caller
from accounts.models import TokenScope
from harness.errors import Invalid, NotFound
from vaults.actions import vaults as actions
from vaults.models import Vault

from .door import READ, Body, Door, Shape, body_of, operation
from .metadata import Metadata, MetadataPatch
from .paging import Page, describe, flag, page_of, paging, parameter

SECRETS = TokenScope.VAULTS_MANAGE
ARCHIVED_TOO = parameter("include_archived", OpenApiTypes.BOOL)


class VaultCreate(Body):
    display_name: str
    metadata: Metadata = {}


class VaultUpdate(Body):
    display_name: str | None = None
    metadata: MetadataPatch | None = None


class VaultShape(Shape):
    type: Literal["vault"] = "vault"
    id: str
    display_name: str
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


class VaultDeleted(Shape):
    type: Literal["vault_deleted"] = "vault_deleted"
    id: str


class VaultPage(Page[VaultShape]):
    pass


def vault_shape(row: Vault) -> dict[str, Any]:
    return VaultShape(
        id=row.uid,
        display_name=row.display_name,
        metadata=row.metadata,
        created_at=row.created_at,
        updated_at=row.updated_at,
        archived_at=row.archived_at,
    ).wire()


def _shapes(rows: Sequence[Vault]) -> list[dict[str, Any]]:
    return [vault_shape(row) for row in rows]


def visible_vaults(caller: Caller) -> Any:
    return Vault.objects.visible_to(caller.user).filter(organisation=caller.organisation)


def find_vault(caller: Caller, uid: str) -> Vault:
    found: Vault | None = visible_vaults(caller).filter(uid=uid).first()
    if found is None:
        raise NotFound(_("There is no such vault."))
    return found


class Vaults(Door):
    scopes = {"GET": READ, "POST": SECRETS}

    @operation(
        "vaults_list",
        tag="vaults",
        response=VaultPage,
        query=(*paging(), ARCHIVED_TOO),
        summary="List your vaults, newest first",
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = visible_vaults(self.caller)
        if not flag(query, "include_archived"):
            rows = rows.in_force()
        about = describe("vaults", query)
        return Response(page_of(rows, query, about=about, show=_shapes))

    @operation(
        "vaults_create",
        tag="vaults",
        request=VaultCreate,
        response=VaultShape,
        summary="Create a vault",
    )
    def post(self, request: Request) -> Response:
        body = body_of(request, VaultCreate)
        row = actions.create_vault(
            actor=self.caller.user,
            organisation=self.caller.organisation,
            display_name=body.display_name,
            metadata=body.metadata,
        )
        return Response(vault_shape(row))


class OneVault(Door):
    scopes = {"GET": READ, "POST": SECRETS, "DELETE": SECRETS}

    @operation("vaults_retrieve", tag="vaults", response=VaultShape, summary="Read about a vault")
    def get(self, request: Request, uid: str) -> Response:
        return Response(vault_shape(find_vault(self.caller, uid)))

    @operation(
        "vaults_update",
        tag="vaults",
        request=VaultUpdate,
        response=VaultShape,
        summary="Change a vault's name and metadata",
    )
    def post(self, request: Request, uid: str) -> Response:
        row = find_vault(self.caller, uid)
        body = body_of(request, VaultUpdate)
        if "display_name" in body.model_fields_set and body.display_name is None:
            raise Invalid(_("A vault has a name."), field="display_name", hint=_("Type one."))
        row = actions.change_vault(
            actor=self.caller.user,
            vault=row,
            display_name=body.display_name,
            metadata=body.metadata,
        )
        return Response(vault_shape(row))

    @operation(
        "vaults_delete",
        tag="vaults",
        response=VaultDeleted,
        summary="Delete a vault and everything in it",
    )
    def delete(self, request: Request, uid: str) -> Response:
        actions.delete_vault(actor=self.caller.user, vault=find_vault(self.caller, uid))
        return Response(VaultDeleted(id=uid).wire())


class ArchiveVault(Door):
    scopes = {"POST": SECRETS}

    @operation(
        "vaults_archive",
        tag="vaults",
        response=VaultShape,
        summary="Archive a vault: its secrets are forgotten, its records stay",
    )
    def post(self, request: Request, uid: str) -> Response:
        row = actions.archive_vault(actor=self.caller.user, vault=find_vault(self.caller, uid))
        return Response(vault_shape(row))
