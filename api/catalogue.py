"""`/api/tools`, `/api/presets`: what is on offer for the caller."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from accounts.models import TokenScope
from agents.models import Agent
from approvals.policyrules import rules_of_new
from conversations.actions.conversations import find_agent, find_environment
from conversations.actions.direct import use_tool
from conversations.actions.preferences import set_defaults, set_shared_defaults
from conversations.defaults import default_agent, default_environment
from conversations.judging import judging_kit, telling_kit
from harness.agentconfig import Features
from harness.errors import Invalid
from harness.history import History
from harness.kit import Kit
from harness.policy import Situation, Verdict
from tools_app.catalogue import describe
from wire.fieldnames import written

from .base import ApiView
from .bodies import read_body
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, answers, listed
from .serializers import (
    DefaultsShape,
    NewDefaults,
    PresetRow,
    ToolRow,
    ToolUsed,
    UseTool,
)


class ToolsView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ, "POST": TokenScope.CONVERSATIONS_READ}

    @extend_schema(
        operation_id="tools_use",
        summary="Use a tool that only reads, without a model",
        description="Nothing is stored. In a conversation its rules hold, as for its agent.",
        tags=["Catalogue"],
        request=UseTool,
        responses=answers(ToolUsed, 401, 403, 404, 422),
    )
    def post(self, request: Any) -> Response:
        given = read_body(UseTool, request.data)
        uid = given.get("conversation_id")
        outcome = use_tool(
            actor=self.actor,
            name=given["name"],
            arguments=given.get("arguments", {}),
            conversation=None if uid is None else self.find_conversation(uid),
        )
        return Response(
            {
                "content": [block.model_dump(mode="json") for block in outcome.content],
                "is_error": outcome.is_error,
                "untrusted": outcome.untrusted,
            }
        )

    @extend_schema(
        operation_id="tools_list",
        summary="List the tools that are really on offer",
        description=(
            "In a conversation as it stands now, or in a new one with a preset: switches, rules of "
            "every level and plan mode are applied."
        ),
        tags=["Catalogue"],
        parameters=[
            OpenApiParameter("conversation_id", OpenApiTypes.STR, description="In this one."),
            OpenApiParameter("preset", OpenApiTypes.STR, description="In a new one with it."),
            LIMIT,
            CURSOR,
        ],
        responses=listed(ToolRow, 401, 403, 404, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request, 500), cursor_of(request, str)
        kit, features = self._kit(request)
        left_out = kit.left_out(History(features=features))
        offered = [
            tool
            for name, tool in sorted(kit.tools.items())
            if kit.policy.offers(tool, features)
            and name not in left_out
            and (not cursor or name > cursor[0])
        ]
        items = [
            {
                **describe(tool),
                "asks": kit.policy.judge(tool, tool.name, Situation(features)).verdict
                is Verdict.ASK,
            }
            for tool in offered[:limit]
        ]
        more = encode_cursor(offered[limit - 1].name) if len(offered) > limit else ""
        return page(request, items, more)

    def _kit(self, request: Any) -> tuple[Kit, Features]:
        uid = request.query_params.get("conversation_id")
        wanted = request.query_params.get("preset")
        if uid is not None and wanted is not None:
            raise Invalid(
                _("It cannot be given together with conversation_id."),
                field="preset",
                hint=_("Leave one of them out: a conversation has its preset."),
            )
        if uid is not None:
            conversation = self.find_conversation(uid)
            return telling_kit(conversation), conversation.features
        actor, organisation = self.actor, self.organisation
        with written({"agent": "preset"}):
            agent = (
                default_agent(actor, organisation)
                if wanted is None
                else find_agent(
                    actor=actor, organisation=organisation, wanted=wanted.replace("\0", "")
                )
            )
        assert agent.current is not None, "on_offer() promises it"  # noqa: S101
        config = agent.current.config
        rules = rules_of_new(organisation.pk, agent.pk, actor.pk)
        return judging_kit(config, rules), config.features


class PresetsView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ}

    @extend_schema(
        operation_id="presets_list",
        summary="List the presets (agents) that a conversation may begin with",
        tags=["Catalogue"],
        parameters=[LIMIT, CURSOR],
        responses=listed(PresetRow, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, str, int)
        rows = Agent.objects.visible_to(self.actor).usable_in(self.organisation).on_offer()
        rows = rows.order_by("name", "pk")
        if cursor:
            name, pk = cursor
            rows = rows.filter(name__gte=name).exclude(name=name, pk__lte=pk)
        found = list(rows[: limit + 1])
        items = [
            {"name": each.name, "description": each.description, "id": each.uid}
            for each in found[:limit]
        ]
        last = found[limit - 1] if len(found) > limit else None
        return page(request, items, encode_cursor(last.name, last.pk) if last else "")


class DefaultsView(ApiView):
    """The caller's own defaults; a service account's are set with its token."""

    scopes = {"GET": TokenScope.CONVERSATIONS_READ, "PUT": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="defaults_retrieve",
        summary="What the caller's conversations begin with where nothing is named",
        tags=["Catalogue"],
        responses=answers(DefaultsShape, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        return Response(self._defaults())

    @extend_schema(
        operation_id="defaults_update",
        summary="Choose what the caller's conversations begin with, or those of the organisation",
        description=(
            "null, or left out: what the organisation has, then the server. With `for` = "
            "`organisation` it is set for everybody there who has not chosen; owners and "
            "administrators may."
        ),
        tags=["Catalogue"],
        request=NewDefaults,
        responses=answers(DefaultsShape, 401, 403, 413, 422),
    )
    def put(self, request: Any) -> Response:
        given = read_body(NewDefaults, request.data)
        named: Any = {"actor": self.actor, "organisation": self.organisation}
        preset, environment = given.get("preset"), given.get("environment")
        with written({"agent": "preset"}):
            agent = find_agent(**named, wanted=preset) if preset else None
        place = find_environment(**named, wanted=environment) if environment else None
        if given.get("for") == "organisation":
            set_shared_defaults(**named, agent=agent, environment=place)
        else:
            set_defaults(actor=self.actor, agent=agent, environment=place)
        return Response(self._defaults())

    def _defaults(self) -> dict[str, Any]:
        agent = default_agent(self.actor, self.organisation)
        environment = default_environment(self.actor, self.organisation)
        return {
            "preset": {"id": agent.uid, "name": agent.name},
            "environment": {"id": environment.uid, "name": environment.name},
        }
