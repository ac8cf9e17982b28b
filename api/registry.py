"""`/v0.1/servers`: a registry of MCP servers by the open interface, with what the caller's organisation
lists.

It speaks that interface's shapes; who may ask, how often, and how it errs is as at `/api`.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from harness.errors import NotFound
from mcpservers.publishing import Listed, listed_for
from mcpservers.serverjson import LATEST

from .base import ApiView
from .mcpservers import TAG
from .moments import moment_given
from .pages import cursor_of, encode_cursor, limit_of
from .schema import answers

USUAL, MOST = 30, 100


class RegistryEntry(serializers.Serializer[Any]):
    server = serializers.JSONField(help_text="A server.json; of secrets it has the names.")
    _meta = serializers.JSONField(required=False)


class RegistryTold(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    nextCursor = serializers.CharField(required=False)  # noqa: N815 - the wire's own name


class RegistryList(serializers.Serializer[Any]):
    servers = RegistryEntry(many=True)
    metadata = RegistryTold()


class OurRegistryView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ}

    def entries(self, name: str = "") -> list[Listed]:
        """All that the caller may know of; those of one `name`."""
        found = listed_for(self.actor, self.organisation, self.request.get_host())
        return [each for each in found if name in {"", each.name}]

    def of_name(self, name: str) -> list[Listed]:
        found = self.entries(name)
        if not found:
            raise NotFound(
                _("There is no such server in the registry."),
                hint=_("GET /v0.1/servers lists them."),
            )
        return found


class ListedServersView(OurRegistryView):
    @extend_schema(
        operation_id="registry_list",
        summary="List the MCP servers of our registry",
        tags=[TAG],
        parameters=[
            OpenApiParameter("limit", int, description=f"1 to {MOST}, else {USUAL}."),
            OpenApiParameter("cursor", str),
            OpenApiParameter("search", str, description="A part of the name."),
            OpenApiParameter("version", str, description="“latest”, or one version."),
            OpenApiParameter("updated_since", OpenApiTypes.DATETIME),
        ],
        responses=answers(RegistryList, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        query = request.query_params
        limit, cursor = min(limit_of(request, USUAL), MOST), cursor_of(request, str)
        wanted = query.get("search", "").casefold()
        version = query.get("version", LATEST)
        since = moment_given(query.get("updated_since"), field="updated_since")
        found = [
            each
            for each in self.entries()
            if wanted in each.name.casefold()
            and version in {LATEST, each.version}
            and (since is None or each.updated_at >= since)
            and (cursor is None or each.name > cursor[0])
        ]
        told: dict[str, Any] = {"count": len(found[:limit])}
        if len(found) > limit:
            told["nextCursor"] = encode_cursor(found[limit - 1].name)
        return Response({"servers": [each.told for each in found[:limit]], "metadata": told})


class ListedVersionsView(OurRegistryView):
    @extend_schema(
        operation_id="registry_versions_list",
        summary="List the versions of a server in our registry: the one that is used",
        tags=[TAG],
        responses=answers(RegistryList, 401, 403, 404, 422),
    )
    def get(self, request: Any, name: str) -> Response:
        found = [each.told for each in self.of_name(name)]
        return Response({"servers": found, "metadata": {"count": len(found)}})


class ListedVersionView(OurRegistryView):
    @extend_schema(
        operation_id="registry_versions_retrieve",
        summary="Read a server of our registry; its version may be “latest”",
        tags=[TAG],
        responses=answers(RegistryEntry, 401, 403, 404, 422),
    )
    def get(self, request: Any, name: str, version: str) -> Response:
        for each in self.of_name(name):
            if version in {LATEST, each.version}:
                return Response(each.told)
        raise NotFound(
            _("There is no such server in the registry."), hint=_("GET /v0.1/servers lists them.")
        )
