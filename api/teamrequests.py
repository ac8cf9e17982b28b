"""`/api/conversations/{id}/team-requests`: what members of a team ask of each other and of people, by an id.

Who may answer, and what follows from it, is the actions'; agents answer by their tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from harness.errors import NotFound
from harness.refusals import not_among
from teams_app.actions.mail import name_in_team
from teams_app.actions.requests import answer_as_person
from teams_app.models import TeamRequest
from teams_app.models.team import TEXT_LIMIT

from .base import ApiView
from .bodies import read_body
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, answers, listed
from .serializers import StrictText

TAG = "Tasks"
READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE


class AnswerToRequest(serializers.Serializer[Any]):
    text = StrictText(max_length=TEXT_LIMIT)


class TeamRequestRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=TeamRequest.Kind.values)
    asker = serializers.CharField(help_text="`lead`, or a teammate's name.")
    addressee = serializers.CharField(
        allow_null=True, help_text="`lead`, or a teammate's name; null: a person is asked."
    )
    person = serializers.CharField(allow_null=True, help_text="The user name of whoever is asked.")
    task = serializers.IntegerField(allow_null=True, help_text="The number of what is handed over.")
    text = serializers.CharField()
    state = serializers.ChoiceField(choices=TeamRequest.State.values)
    answer = serializers.CharField(allow_blank=True)
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    closed_at = serializers.DateTimeField(allow_null=True)


def request_rows(requests: Sequence[TeamRequest]) -> list[dict[str, Any]]:
    """Of one team."""
    members = {member for each in requests for member in (each.asker_id, each.addressee_id)}
    names = {
        member: name_in_team(requests[0].team, member) for member in members if member is not None
    }
    return [
        {
            "id": each.uid,
            "kind": each.kind,
            "asker": names[each.asker_id],
            "addressee": None if each.addressee_id is None else names[each.addressee_id],
            "person": None if each.person is None else each.person.username,
            "task": None if each.task is None else each.task.number,
            "text": each.text,
            "state": each.state,
            "answer": each.answer,
            "created_at": each.created_at,
            "expires_at": each.expires_at,
            "closed_at": each.closed_at,
        }
        for each in requests
    ]


class RequestsView(ApiView):
    scopes = {"GET": READ}

    @extend_schema(
        operation_id="conversations_team_requests_list",
        summary="List what the team of a conversation asks of its members and of people, newest first",
        tags=[TAG],
        parameters=[
            OpenApiParameter("state", OpenApiTypes.STR, enum=TeamRequest.State.values),
            LIMIT,
            CURSOR,
        ],
        responses=listed(TeamRequestRow, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        state = request.query_params.get("state", "")
        if state and state not in TeamRequest.State.values:
            raise not_among("state", state, tuple(TeamRequest.State.values))
        found = TeamRequest.objects.filter(team__lead=self.find_conversation(uid))
        found = found.select_related("team", "person", "task")
        if state:
            found = found.filter(state=state)
        if cursor:
            found = found.filter(pk__lt=cursor[0])
        rows = list(found.order_by("-pk")[: limit + 1])
        more = encode_cursor(rows[limit - 1].pk) if len(rows) > limit else ""
        return page(request, request_rows(rows[:limit]), more)


class AnswerView(ApiView):
    scopes = {"POST": WRITE}

    @extend_schema(
        operation_id="conversations_team_requests_answer",
        summary="Answer a question of a team that was asked of oneself, once",
        description="Whoever asked is told of it.",
        tags=[TAG],
        request=AnswerToRequest,
        responses=answers(TeamRequestRow, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Any, uid: str, asked: str) -> Response:
        rows = TeamRequest.objects.filter(team__lead=self.find_conversation(uid))
        rows = rows.select_related("team", "person", "task")
        found = rows.filter(uid=asked, person=self.actor).first()
        if found is None:
            raise NotFound(
                _("There is no such question."),
                hint=_("GET /api/conversations/{id}/team-requests lists those of a conversation."),
            )
        text = read_body(AnswerToRequest, request.data)["text"]
        answer_as_person(actor=self.actor, request=found, approve=True, text=text)
        return Response(request_rows([rows.get(pk=found.pk)])[0])
