"""`/api/agents/{id}/canary`: a newer version that a share of an agent's new conversations begins with, what
came of them, promoting and rolling back. Every rule is the actions'."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from agents.actions.agents import CHANGE, require_editor
from agents.models import Agent, AgentVersion
from evals.actions.canaries import MOST_SHARE, promote_canary, roll_back_canary, set_canary
from evals.canaries import as_json, canary_of
from harness.errors import NotFound

from .agents import AgentsOfCaller
from .bodies import read_body
from .schema import answers
from .serializers import Deleted, StrictText

TAG = "Evals"
READ, MANAGE = TokenScope.CONVERSATIONS_READ, TokenScope.AGENTS_MANAGE


class FiguresOfVersion(serializers.Serializer[Any]):
    """Of the conversations that people began with it since the canary began."""

    version = serializers.IntegerField()
    conversations = serializers.IntegerField()
    failed = serializers.IntegerField(help_text="With a turn that ended in a failure.")
    cost = serializers.CharField(help_text="US dollars.")
    unpriced = serializers.BooleanField(help_text="Some of it has no known price.")
    good = serializers.IntegerField(help_text="Answers that readers think well of.")
    bad = serializers.IntegerField()


class CanaryRow(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    share = serializers.IntegerField(help_text="Percent of new conversations.")
    reason = serializers.CharField(allow_blank=True)
    started_at = serializers.DateTimeField()
    in_use = FiguresOfVersion()
    canary = FiguresOfVersion()


class SetCanary(serializers.Serializer[Any]):
    version = serializers.IntegerField(required=False, min_value=1, help_text="Else the newest.")
    share = serializers.IntegerField(min_value=1, max_value=MOST_SHARE)
    reason = StrictText(
        required=False,
        allow_blank=True,
        max_length=500,
        help_text="Why it is let pass although a suite is not green. A person's alone.",
    )


class PromoteCanary(serializers.Serializer[Any]):
    version = serializers.IntegerField(
        required=False, min_value=1, help_text="409 where another one is the canary by now."
    )
    reason = StrictText(required=False, allow_blank=True, max_length=500)


class Promoted(serializers.Serializer[Any]):
    version = serializers.IntegerField(help_text="What new conversations begin with.")


class CanaryOfAgentView(AgentsOfCaller):
    scopes = {"GET": READ, "PUT": MANAGE, "DELETE": MANAGE}

    @extend_schema(
        operation_id="agents_canary_retrieve",
        summary="Read an agent's canary beside the version in use",
        tags=[TAG],
        responses=answers(CanaryRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return self._answer(self._managed(uid))

    @extend_schema(
        operation_id="agents_canary_update",
        summary="Give a newer version a share of new conversations, or another share",
        tags=[TAG],
        request=SetCanary,
        responses=answers(CanaryRow, 401, 403, 404, 409, 422),
    )
    def put(self, request: Any, uid: str) -> Response:
        agent = self._managed(uid)
        given = dict(read_body(SetCanary, request.data))
        number = given.pop("version", None)
        rows = AgentVersion.objects.visible_to(self.actor).filter(agent=agent).order_by("-number")
        version = (rows if number is None else rows.filter(number=number)).first()
        if version is None:
            raise NotFound(_("%(agent)s has no such version.") % {"agent": agent.name})
        set_canary(actor=self.actor, agent=agent, version=version, **given)
        return self._answer(agent)

    @extend_schema(
        operation_id="agents_canary_destroy",
        summary="Roll the canary back: no new conversation begins with it",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str) -> Response:
        roll_back_canary(actor=self.actor, agent=self.find(uid))
        return Response({"status": "deleted"})

    def _managed(self, uid: str) -> Agent:
        agent = self.find(uid)
        require_editor(self.actor, agent, CHANGE)
        return agent

    def _answer(self, agent: Agent) -> Response:
        canary = canary_of(agent.pk)
        if canary is None:
            raise NotFound(_("This agent has no canary."))
        return Response(as_json(canary))


class PromoteCanaryView(AgentsOfCaller):
    scopes = {"POST": MANAGE}

    @extend_schema(
        operation_id="agents_canary_promote",
        summary="Have all new conversations begin with the canary",
        tags=[TAG],
        request=PromoteCanary,
        responses=answers(Promoted, 401, 403, 404, 409, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        agent = self.find(uid)
        given = dict(read_body(PromoteCanary, request.data))
        number = given.pop("version", None)
        release = promote_canary(actor=self.actor, agent=agent, number=number, **given)
        return Response({"version": release.version.number})
