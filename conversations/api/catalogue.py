"""`/api/tools`, `/api/presets`, `/api/skills`: what is on offer for the caller."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ParseError
from rest_framework.response import Response

from accounts.models import TokenScope
from conversations.actions.conversations import find_agent
from conversations.defaults import default_agent
from conversations.judging import judging_kit, kit_of
from conversations.models import Agent
from conversations.policyrules import rules_of_new
from harness.agentconfig import Features
from harness.errors import Conflict
from harness.kit import Kit
from harness.policy import Situation, Verdict
from tools_app.catalogue import describe

from .base import ApiView
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, answers, listed
from .serializers import NamedRow, NewSkill, PresetRow, ToolRow


class NoSkills(Conflict):
    """There is nothing here that could keep a skill."""

    code = "unavailable"


class ToolsView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ}

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
        offered = [
            tool
            for name, tool in sorted(kit.tools.items())
            if kit.policy.offers(tool, features) and (not cursor or name > cursor[0])
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
        if uid is not None:
            conversation = self.find_conversation(uid)
            return kit_of(conversation), conversation.features
        wanted = request.query_params.get("preset", "").replace("\0", "")
        actor, organisation = self.actor, self.organisation
        agent = (
            find_agent(actor=actor, organisation=organisation, wanted=wanted)
            if wanted
            else default_agent(actor, organisation)
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


class SkillsView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ, "POST": TokenScope.SKILLS_MANAGE}

    @extend_schema(
        operation_id="skills_list",
        summary="List the skills",
        description="Empty where no skills are installed on this server.",
        tags=["Catalogue"],
        parameters=[LIMIT, CURSOR],
        responses=listed(NamedRow, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        limit_of(request)
        cursor_of(request, str)
        return page(request, [])

    @extend_schema(
        operation_id="skills_create",
        summary="Upload a skill",
        description="409 `unavailable` where no skills are installed on this server.",
        tags=["Catalogue"],
        request=NewSkill,
        responses=answers(NamedRow, 401, 403, 409, 422),
    )
    def post(self, request: Any) -> Response:
        if not isinstance(request.data, dict):
            raise ParseError("The body must be one JSON object.")
        NewSkill(data=request.data).is_valid(raise_exception=True)
        raise NoSkills(
            _("No skills are installed on this server."),
            hint=_("Put what the agent should know into its instructions."),
        )
