"""`/api/mcp-servers`: servers whose tools agents use, and what is released of them. No header comes out."""

from __future__ import annotations

from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_variables
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from conversations.models import Conversation
from harness.errors import NotFound
from mcpservers.actions import servers as actions
from mcpservers.counting import Counted, counted
from mcpservers.listing import Described
from mcpservers.models import McpServer, McpTool
from mcpservers.offers import offers_of

from .base import ApiView
from .bodies import read_body
from .schema import answers, errors, listed
from .serializers import Deleted, StrictText

TAG = "MCP servers"
ADMIN = TokenScope.ADMIN
ADDED = ("deployment", "organisation", "person")
"""Scopes of servers that are added here; those of agents and conversations come with these."""
_STATES = ("released", "new", "changed", "gone", "refused")


class _Headers(serializers.DictField):
    child = StrictText(max_length=8_000)


class NewMcpServer(serializers.Serializer[Any]):
    name = StrictText(max_length=32, help_text="Rules address its tools as mcp:name:tool.")
    url = StrictText(required=False, default="", max_length=500)
    command = StrictText(
        required=False, default="", max_length=200, help_text="In place of url: a program."
    )
    arguments = serializers.ListField(child=StrictText(max_length=2_000), required=False)
    scope = serializers.ChoiceField(choices=ADDED, default="person")
    headers = _Headers(required=False, help_text="Sent along; stored sealed and never sent back.")
    variables = _Headers(required=False, help_text="That a program finds; sealed like headers.")
    timeout_seconds = serializers.IntegerField(required=False, default=60)


class ChangedMcpServer(serializers.Serializer[Any]):
    """What is left out stays. At another address, or as another program, it is another server: headers and
    variables are forgotten and all tools held."""

    url = StrictText(required=False, max_length=500)
    command = StrictText(required=False, max_length=200)
    arguments = serializers.ListField(child=StrictText(max_length=2_000), required=False)
    headers = _Headers(required=False)
    variables = _Headers(required=False)
    timeout_seconds = serializers.IntegerField(required=False)
    enabled = serializers.BooleanField(required=False)
    through_provider = serializers.BooleanField(
        required=False, help_text="Whether model services may call it themselves."
    )
    listed = serializers.BooleanField(
        required=False, help_text="Whether it stands in our registry, /v0.1/servers."
    )


class McpToolRow(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="As models know it.")
    remote_name = serializers.CharField()
    state = serializers.ChoiceField(choices=_STATES)
    fault = serializers.CharField(allow_blank=True)
    released = serializers.JSONField(allow_null=True, help_text="What agents are told of it.")
    seen = serializers.JSONField(allow_null=True, help_text="What it says now, where it differs.")
    seen_digest = serializers.CharField(allow_blank=True, help_text="What a release names.")
    calls = serializers.IntegerField(help_text="In thirty days, by anybody.")
    failed = serializers.IntegerField()
    mean_ms = serializers.IntegerField()
    slowest_ms = serializers.IntegerField()
    failed_at = serializers.DateTimeField(allow_null=True)
    failure = serializers.ChoiceField(choices=McpTool.Failure.values, allow_blank=True)


class McpResourceRow(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="As one types it behind @server:.")
    uri = serializers.CharField()
    about = serializers.CharField(allow_blank=True)


class McpArgumentRow(serializers.Serializer[Any]):
    name = serializers.CharField()
    about = serializers.CharField(allow_blank=True)
    is_required = serializers.BooleanField()


class McpPromptRow(serializers.Serializer[Any]):
    name = serializers.CharField()
    about = serializers.CharField(allow_blank=True)
    arguments = McpArgumentRow(many=True)


class McpServerRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    name = serializers.CharField()
    url = serializers.CharField(allow_blank=True, help_text="Empty: it is a program.")
    command = serializers.CharField(allow_blank=True)
    arguments = serializers.ListField(child=serializers.CharField())
    scope = serializers.ChoiceField(choices=McpServer.Scope.values)
    agent_id = serializers.CharField(allow_null=True, help_text="In whose runs alone it is used.")
    conversation_id = serializers.CharField(allow_null=True, help_text="In which alone it is used.")
    enabled = serializers.BooleanField()
    through_provider = serializers.BooleanField()
    has_headers = serializers.BooleanField(help_text="Or variables, where it is a program.")
    timeout_seconds = serializers.IntegerField()
    listed_at = serializers.DateTimeField(allow_null=True)
    failing_since = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField(allow_blank=True)
    last_output = serializers.CharField(
        allow_blank=True, help_text="What a program wrote into its errors when it was looked at."
    )
    protocol = serializers.CharField(allow_blank=True)
    published_name = serializers.CharField(
        allow_blank=True, help_text="In the registry that it is from."
    )
    published_version = serializers.CharField(allow_blank=True)
    listed = serializers.BooleanField(help_text="Whether it stands in our registry, /v0.1/servers.")
    created_at = serializers.DateTimeField()


class McpServerDetail(McpServerRow):
    tools = McpToolRow(many=True)
    resources = McpResourceRow(many=True)
    prompts = McpPromptRow(many=True)


class ReleaseBody(serializers.Serializer[Any]):
    tool = StrictText(max_length=128, help_text="Its remote_name.")
    digest = StrictText(max_length=64, help_text="The seen_digest of what was looked at.")


def _row(server: McpServer) -> dict[str, Any]:
    return {
        "id": server.uid,
        "name": server.name,
        "url": server.url,
        "command": server.command,
        "arguments": server.arguments,
        "scope": server.scope.value,
        "agent_id": server.agent.uid if server.agent else None,
        "conversation_id": server.conversation.uid if server.conversation else None,
        "enabled": server.disabled_at is None,
        "through_provider": server.through_provider,
        "has_headers": bool(server.sealed),
        "timeout_seconds": server.timeout_seconds,
        "listed_at": server.listed_at,
        "failing_since": server.failing_since,
        "last_error": server.last_error,
        "last_output": server.last_output,
        "protocol": server.protocol,
        "published_name": server.published_name,
        "published_version": server.published_version,
        "listed": server.listed,
        "created_at": server.created_at,
    }


def _tool(row: McpTool, calls: Counted) -> dict[str, Any]:
    return {
        "name": row.name,
        "remote_name": row.remote_name,
        "state": row.state,
        "fault": row.fault,
        "released": row.pinned,
        "seen": row.seen,
        "seen_digest": Described.model_validate(row.seen).digest if row.seen else "",
        "calls": calls.calls,
        "failed": calls.failed,
        "mean_ms": calls.mean_ms,
        "slowest_ms": calls.slowest_ms,
        "failed_at": row.failed_at,
        "failure": row.failure,
    }


def detail_of(server: McpServer) -> dict[str, Any]:
    rows = list(server.tools.all())
    calls = counted(rows)
    tools = [_tool(row, calls.get(row.pk, Counted())) for row in rows]
    offers = offers_of(server)
    resources = [
        {"name": each.label, "uri": each.uri, "about": each.about} for each in offers.resources
    ]
    prompts = [
        {
            "name": each.name,
            "about": each.about,
            "arguments": [
                {"name": one.name, "about": one.about, "is_required": one.required}
                for one in each.arguments
            ],
        }
        for each in offers.prompts
    ]
    return {**_row(server), "tools": tools, "resources": resources, "prompts": prompts}


class McpView(ApiView):
    def servers(self) -> Any:
        """The broadest first; those of single conversations are found by their ids."""
        rows = McpServer.objects.usable_by(self.actor, self.organisation.pk)
        return rows.select_related("agent", "conversation").order_by(
            F("owner").asc(nulls_first=True),
            F("agent").asc(nulls_first=True),
            F("organisation").asc(nulls_first=True),
            "pk",
        )

    def find_server(self, uid: str) -> McpServer:
        found = self.servers().filter(uid=uid).first()
        if not isinstance(found, McpServer):
            raise NotFound(
                _("There is no such MCP server."), hint=_("GET /api/mcp-servers lists yours.")
            )
        return found


class McpServersView(McpView):
    scopes = {"GET": ADMIN, "POST": ADMIN}

    @extend_schema(
        operation_id="mcp_servers_list",
        summary="List the MCP servers that one's work may use",
        tags=[TAG],
        parameters=[
            OpenApiParameter(
                "conversation_id", str, description="Those that this conversation alone has."
            )
        ],
        responses=listed(McpServerRow, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        if wanted := request.query_params.get("conversation_id"):
            rows = self.servers().filter(conversation__in=Conversation.objects.named(wanted))
        else:
            rows = self.servers().filter(conversation=None)
        return Response([_row(each) for each in rows])

    @extend_schema(
        operation_id="mcp_servers_create",
        summary="Add an MCP server; it is looked at at once",
        tags=[TAG],
        request=NewMcpServer,
        responses={201: McpServerDetail, **errors(401, 403, 409, 413, 422)},
    )
    @sensitive_variables("given")
    def post(self, request: Any) -> Response:
        given = read_body(NewMcpServer, request.data)
        made = actions.add_server(
            actor=self.actor,
            organisation=self.organisation,
            **{**given, "scope": McpServer.Scope(given["scope"])},
        )
        return Response(detail_of(made), status=201)


class OneMcpServerView(McpView):
    scopes = {"GET": ADMIN, "PATCH": ADMIN, "DELETE": ADMIN}

    @extend_schema(
        operation_id="mcp_servers_retrieve",
        summary="Read an MCP server and its tools",
        tags=[TAG],
        responses=answers(McpServerDetail, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return Response(detail_of(self.find_server(uid)))

    @extend_schema(
        operation_id="mcp_servers_update",
        summary="Change an MCP server, or switch it on or off",
        tags=[TAG],
        request=ChangedMcpServer,
        responses=answers(McpServerDetail, 401, 403, 404, 413, 422),
    )
    @sensitive_variables("given")
    def patch(self, request: Any, uid: str) -> Response:
        server = self.find_server(uid)
        given = read_body(ChangedMcpServer, request.data)
        return Response(detail_of(actions.change_server(actor=self.actor, server=server, **given)))

    @extend_schema(
        operation_id="mcp_servers_destroy",
        summary="Take an MCP server away",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str) -> Response:
        actions.remove_server(actor=self.actor, server=self.find_server(uid))
        return Response({"status": "deleted"})


class LookView(McpView):
    scopes = {"POST": ADMIN}

    @extend_schema(
        operation_id="mcp_servers_look",
        summary="Look at an MCP server now",
        description="last_error says why it could not be looked at.",
        tags=[TAG],
        request=None,
        responses=answers(McpServerDetail, 401, 403, 404),
    )
    def post(self, request: Any, uid: str) -> Response:
        actions.look_again(actor=self.actor, server=self.find_server(uid))
        return Response(detail_of(self.find_server(uid)))


class ReleaseView(McpView):
    scopes = {"POST": ADMIN}

    @extend_schema(
        operation_id="mcp_servers_release",
        summary="Release what a tool says now",
        tags=[TAG],
        request=ReleaseBody,
        responses=answers(McpToolRow, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        server = self.find_server(uid)
        given = read_body(ReleaseBody, request.data)
        row = actions.release_tool(actor=self.actor, server=server, **given)
        return Response(_tool(row, counted([row]).get(row.pk, Counted())))
