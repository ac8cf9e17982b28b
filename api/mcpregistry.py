"""`/api/mcp-registry`: what the operator's registries of MCP servers have, and adding one of it."""

from __future__ import annotations

from typing import Any

from django.views.decorators.debug import sensitive_variables
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from mcpservers.actions import registry as actions
from mcpservers.models import McpServer
from mcpservers.serverjson import LATEST, ServerJson, Way
from reading.digits import number_of

from .base import ApiView
from .bodies import read_body
from .mcpservers import ADDED, TAG, McpServerDetail, detail_of
from .schema import answers, errors
from .serializers import StrictText

ADMIN = TokenScope.ADMIN
REGISTRY = OpenApiParameter("registry", int, description="Which of the operator's, from 0 on.")


class RegisteredRow(serializers.Serializer[Any]):
    name = serializers.CharField()
    title = serializers.CharField(allow_blank=True)
    description = serializers.CharField(allow_blank=True)
    version = serializers.CharField()


class RegisteredPage(serializers.Serializer[Any]):
    servers = RegisteredRow(many=True)
    unreadable = serializers.IntegerField(help_text="More that are described in no way to be read.")
    cursor = serializers.CharField(allow_blank=True, help_text="Of the next page; empty: none.")


class RegisteredQuestion(serializers.Serializer[Any]):
    key = serializers.CharField(help_text="What `answers` has it under.")
    title = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    is_required = serializers.BooleanField()
    is_secret = serializers.BooleanField()
    default = serializers.CharField(allow_blank=True, help_text="Never of a secret.")
    choices = serializers.ListField(child=serializers.CharField())


class RegisteredSettled(serializers.Serializer[Any]):
    name = serializers.CharField(allow_blank=True, help_text="Of a header, variable or argument.")
    value = serializers.CharField()


class RegisteredWay(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    what = serializers.CharField()
    refusal = serializers.CharField(allow_blank=True, help_text="Why it is none here.")
    hint = serializers.CharField(allow_blank=True)
    settled = RegisteredSettled(many=True, help_text="What it sets without asking.")
    questions = RegisteredQuestion(many=True)


class RegisteredDetail(RegisteredRow):
    digest = serializers.CharField(help_text="Names what was looked at when one adds it.")
    ways = RegisteredWay(many=True)


class AddRegistered(serializers.Serializer[Any]):
    registry = serializers.IntegerField(min_value=0, default=0)
    name = StrictText(max_length=201)
    version = StrictText(max_length=100)
    digest = StrictText(max_length=64)
    way = serializers.IntegerField(min_value=0)
    answers = serializers.DictField(child=StrictText(max_length=8_000), required=False)
    called = StrictText(required=False, default="", max_length=32)
    scope = serializers.ChoiceField(choices=ADDED, default="person")


class RegistryView(ApiView):
    scopes = {"GET": ADMIN, "POST": ADMIN}

    @extend_schema(
        operation_id="mcp_registry_search",
        summary="Search a registry of MCP servers, a page at a time",
        tags=[TAG],
        parameters=[
            REGISTRY,
            OpenApiParameter("search", str, description="A part of the name."),
            OpenApiParameter("cursor", str),
        ],
        responses=answers(RegisteredPage, 400, 401, 403, 404, 422),
    )
    def get(self, request: Any) -> Response:
        query = request.query_params
        found = actions.search_registry(
            actor=self.actor,
            organisation=self.organisation,
            number=_number(query),
            text=query.get("search", ""),
            cursor=query.get("cursor", ""),
        )
        return Response(
            {
                "servers": [_row(each) for each in found.servers],
                "unreadable": found.unreadable,
                "cursor": found.cursor,
            }
        )

    @extend_schema(
        operation_id="mcp_registry_add",
        summary="Add a server of a registry, at the version that was looked at",
        tags=[TAG],
        request=AddRegistered,
        responses={201: McpServerDetail, **errors(400, 401, 403, 404, 409, 413, 422)},
    )
    @sensitive_variables("given")
    def post(self, request: Any) -> Response:
        given = read_body(AddRegistered, request.data)
        made = actions.add_registered(
            actor=self.actor,
            organisation=self.organisation,
            number=given.pop("registry"),
            scope=McpServer.Scope(given.pop("scope")),
            answers=given.pop("answers", {}),
            **given,
        )
        return Response(detail_of(made), status=201)


class RegisteredView(ApiView):
    scopes = {"GET": ADMIN}

    @extend_schema(
        operation_id="mcp_registry_retrieve",
        summary="Read a server of a registry, and what each way to have it asks for",
        tags=[TAG],
        parameters=[
            REGISTRY,
            OpenApiParameter("name", str, required=True),
            OpenApiParameter("version", str, description="Left out: the newest."),
        ],
        responses=answers(RegisteredDetail, 400, 401, 403, 404, 422),
    )
    def get(self, request: Any) -> Response:
        query = request.query_params
        found = actions.read_registered(
            actor=self.actor,
            organisation=self.organisation,
            number=_number(query),
            name=query.get("name", ""),
            version=query.get("version", LATEST),
        )
        ways = [_way(each) for each in actions.offered_ways(found)]
        return Response({**_row(found), "digest": found.digest, "ways": ways})


def _number(query: Any) -> int:
    number = number_of(query.get("registry", "0"))
    return -1 if number is None else number


def _row(server: ServerJson) -> dict[str, Any]:
    return server.model_dump(include={"name", "title", "description", "version"})


def _way(way: Way) -> dict[str, Any]:
    questions = [
        {
            "key": each.key,
            "title": each.label,
            "description": each.input.description,
            "is_required": each.input.is_required,
            "is_secret": each.input.is_secret,
            "default": "" if each.input.is_secret else each.input.default or "",
            "choices": [] if each.input.is_secret else each.input.choices or [],
        }
        for each in way.questions
    ]
    return {
        "number": way.number,
        "what": way.what,
        "refusal": way.refusal,
        "hint": way.hint,
        "settled": [{"name": name, "value": value} for name, value in way.settled],
        "questions": questions,
    }
