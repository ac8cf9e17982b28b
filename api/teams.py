"""`/api/conversations/{id}/team`: who works in a conversation's team, and what was written to each.

Of whom it consists and who may change it is the actions'; what members ask of each other by an id is theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Count
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from conversations.models import Conversation
from harness.errors import NotFound
from harness.refusals import not_among
from teams_app.actions.mail import name_in_team, write_as_person
from teams_app.actions.teams import (
    dismiss_teammate,
    resume_teammate,
    spawn_teammate,
    stop_teammate,
)
from teams_app.members import LEAD, Member, Status, members_of, status_of
from teams_app.models import Mail, Team, Teammate
from teams_app.models.team import NAME_LIMIT, ROLE_LIMIT, TEXT_LIMIT

from .base import ApiView
from .bodies import read_body
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, answers, errors, listed
from .serializers import StrictSwitch, StrictText

TAG = "Tasks"
READ, WRITE = TokenScope.CONVERSATIONS_READ, TokenScope.CONVERSATIONS_WRITE
ALL = "all"
"""In the place of a name, which no teammate has: whoever was not dismissed, without the lead."""
READING = ("true", "false")


class NewTeammate(serializers.Serializer[Any]):
    name = StrictText(max_length=NAME_LIMIT, help_text="Small letters, digits, `_` and `-`.")
    role = StrictText(required=False, allow_blank=True, max_length=ROLE_LIMIT)
    prompt = StrictText(max_length=TEXT_LIMIT, help_text="What it is to do first.")
    agent = StrictText(
        required=False,
        allow_blank=True,
        max_length=100,
        help_text="Name or id: of the lead's roster, or on offer. Without: an agent like the lead.",
    )


class ChangedTeammate(serializers.Serializer[Any]):
    stopped = StrictSwitch(help_text="Does nothing until it is false again; what is written waits.")


class TeammateRow(serializers.Serializer[Any]):
    name = serializers.CharField()
    role = serializers.CharField(allow_blank=True)
    status = serializers.ChoiceField(choices=list(Status))
    conversation_id = serializers.CharField(help_text="In which it works.")
    unread = serializers.IntegerField(help_text="Messages that its agent has not taken yet.")
    created_at = serializers.DateTimeField()
    idle_since = serializers.DateTimeField(allow_null=True)
    dismissed_at = serializers.DateTimeField(allow_null=True)


class NewTeamMessage(serializers.Serializer[Any]):
    content = StrictText(max_length=TEXT_LIMIT)
    key = StrictText(
        required=False,
        max_length=100,
        help_text="The same one twice writes one message to each member.",
    )


class TeamMessageRow(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.ChoiceField(choices=Mail.Kind.values)
    sender = serializers.CharField(
        allow_null=True, help_text="`lead`, or a name; null: it tells of what happened."
    )
    receiver = serializers.CharField()
    content = serializers.CharField()
    delivered = serializers.BooleanField(help_text="False while it is held back.")
    read = serializers.BooleanField(help_text="The receiver's agent has taken it.")
    created_at = serializers.DateTimeField()


def teammate_rows(teammates: Iterable[Teammate]) -> list[dict[str, Any]]:
    found = list(teammates)
    boxes = Mail.objects.unread().filter(receiver__in=[each.conversation_id for each in found])
    unread = dict(boxes.order_by().values_list("receiver").annotate(Count("pk")))
    return [
        {
            "name": each.name,
            "role": each.role,
            "status": status_of(each.conversation, each),
            "conversation_id": each.conversation.uid,
            "unread": unread.get(each.conversation_id, 0),
            "created_at": each.created_at,
            "idle_since": each.idle_since,
            "dismissed_at": each.dismissed_at,
        }
        for each in found
    ]


def message_rows(mails: Sequence[Mail]) -> list[dict[str, Any]]:
    """Of one team, each with `was_read`."""
    names = {member: "" for mail in mails for member in (mail.sender_id, mail.receiver_id)}
    for member in names if mails else ():
        names[member] = name_in_team(mails[0].team, member)
    return [
        {
            "id": mail.uid,
            "kind": mail.kind,
            "sender": _sender(mail, names),
            "receiver": names[mail.receiver_id],
            "content": mail.text,
            "delivered": bool(mail.event_uid),
            "read": mail.was_read,
            "created_at": mail.created_at,
        }
        for mail in mails
    ]


def _sender(mail: Mail, names: dict[int | None, str]) -> str | None:
    if mail.kind == Mail.Kind.PERSON:
        return mail.team.lead.owner.username
    return names[mail.sender_id] if mail.sender_id is not None else None


class TeamView(ApiView):
    def team(self, lead: Conversation) -> Team:
        """NotFound where nobody was brought in yet."""
        found = Team.objects.select_related("lead__owner").filter(lead=lead).first()
        if found is None:
            raise _nobody()
        return found

    def teammate(self, uid: str, member: str) -> Teammate:
        found = self.teammates(self.find_conversation(uid)).filter(name=member).first()
        if not isinstance(found, Teammate):
            raise _nobody()
        return found

    def teammates(self, lead: Conversation) -> Any:
        rows = Teammate.objects.filter(team__lead=lead)
        return rows.select_related("team__lead__owner", "conversation")

    def shown(self, teammate: Teammate) -> dict[str, Any]:
        found = self.teammates(teammate.team.lead).get(pk=teammate.pk)
        return teammate_rows([found])[0]


class RosterView(TeamView):
    scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="conversations_team_list",
        summary="List the teammates of a conversation's agent, the longest there first",
        description="Of the conversation that a person began. Those that were dismissed are among them.",
        tags=[TAG],
        parameters=[
            OpenApiParameter("status", OpenApiTypes.STR, enum=list(Status)),
            LIMIT,
            CURSOR,
        ],
        responses=listed(TeammateRow, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        status = request.query_params.get("status", "")
        if status and status not in list(Status):
            raise not_among("status", status, tuple(Status))
        found = self.teammates(self.find_conversation(uid))
        if cursor:
            found = found.filter(pk__gt=cursor[0])
        rows = list(found.order_by("pk")[: limit + 1])
        more = encode_cursor(rows[limit - 1].pk) if len(rows) > limit else ""
        told = teammate_rows(rows[:limit])
        return page(request, [row for row in told if status in {"", row["status"]}], more)

    @extend_schema(
        operation_id="conversations_team_add",
        summary="Bring a teammate in, which begins at once",
        description="By the owner of a conversation that works as a team; its lead hears of it.",
        tags=[TAG],
        request=NewTeammate,
        responses={201: TeammateRow, **errors(401, 403, 404, 409, 413, 422)},
    )
    def post(self, request: Any, uid: str) -> Response:
        lead = self.find_conversation(uid)
        given = read_body(NewTeammate, request.data)
        made = spawn_teammate(
            actor=self.actor,
            lead=lead,
            name=given["name"],
            role=given.get("role", ""),
            text=given["prompt"],
            agent=given.get("agent", ""),
        )
        return Response(self.shown(made), status=201)


class OneTeammateView(TeamView):
    scopes = {"GET": READ, "PATCH": WRITE, "DELETE": WRITE}

    @extend_schema(
        operation_id="conversations_team_retrieve",
        summary="Read how a teammate stands",
        tags=[TAG],
        responses=answers(TeammateRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str, member: str) -> Response:
        return Response(self.shown(self.teammate(uid, member)))

    @extend_schema(
        operation_id="conversations_team_change",
        summary="Stop a teammate, or let it go on",
        tags=[TAG],
        request=ChangedTeammate,
        responses=answers(TeammateRow, 401, 403, 404, 409, 422),
    )
    def patch(self, request: Any, uid: str, member: str) -> Response:
        teammate = self.teammate(uid, member)
        stopped = read_body(ChangedTeammate, request.data)["stopped"]
        act = stop_teammate if stopped else resume_teammate
        act(actor=self.actor, teammate=teammate)
        return Response(self.shown(teammate))

    @extend_schema(
        operation_id="conversations_team_dismiss",
        summary="Dismiss a teammate: its open tasks are nobody's, its conversation stays",
        tags=[TAG],
        responses=answers(TeammateRow, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str, member: str) -> Response:
        teammate = self.teammate(uid, member)
        dismiss_teammate(actor=self.actor, teammate=teammate)
        return Response(self.shown(teammate))


class TeamMessagesView(TeamView):
    scopes = {"GET": READ, "POST": WRITE}

    @extend_schema(
        operation_id="conversations_team_messages_list",
        summary="List what was written to one member of a team, newest first",
        description="`lead` and `all` stand for whoever leads and for everybody.",
        tags=[TAG],
        parameters=[
            OpenApiParameter("read", OpenApiTypes.STR, enum=list(READING)),
            LIMIT,
            CURSOR,
        ],
        responses=listed(TeamMessageRow, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str, member: str) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        wanted = request.query_params.get("read", "")
        if wanted and wanted not in READING:
            raise not_among("read", wanted, READING)
        found = self._boxes(uid, member)
        if wanted:
            found = found.filter(was_read=wanted == "true")
        if cursor:
            found = found.filter(pk__lt=cursor[0])
        rows = list(found.order_by("-pk")[: limit + 1])
        more = encode_cursor(rows[limit - 1].pk) if len(rows) > limit else ""
        return page(request, message_rows(rows[:limit]), more)

    @extend_schema(
        operation_id="conversations_team_messages_send",
        summary="Write to one member of a team, or to `all` teammates",
        description="By the owner. Each hears it at its next step, or begins a turn with it; one that was "
        "stopped, once it goes on. Answers one row for each mailbox.",
        tags=[TAG],
        request=NewTeamMessage,
        responses={
            201: OpenApiResponse(TeamMessageRow(many=True)),
            **errors(401, 403, 404, 409, 413, 422),
        },
    )
    def post(self, request: Any, uid: str, member: str) -> Response:
        team = self.team(self.find_conversation(uid))
        given = read_body(NewTeamMessage, request.data)
        sent = write_as_person(
            actor=self.actor,
            team=team,
            receivers=_named(team, member),
            text=given["content"],
            key=given.get("key"),
        )
        rows = team.mails.with_reading().filter(pk__in=[mail.pk for mail in sent])
        shown = rows.select_related("team__lead__owner").order_by("pk")
        return Response(message_rows(list(shown)), status=201)

    def _boxes(self, uid: str, member: str) -> Any:
        lead = self.find_conversation(uid)
        rows = Mail.objects.filter(team=self.team(lead))
        rows = rows.select_related("team__lead__owner").with_reading()
        if member == ALL:
            return rows
        if member == LEAD:
            return rows.filter(receiver=lead)
        return rows.filter(receiver=self.teammate(uid, member).conversation)


def _named(team: Team, name: str) -> list[Member]:
    """NotFound for nobody who is still there."""
    lead, *others = members_of(team)
    if name == ALL and others:
        return others
    for member in (lead, *others):
        if member.name == name:
            return [member]
    raise _nobody()


def _nobody() -> NotFound:
    return NotFound(
        _("There is no such teammate."),
        hint=_("GET /api/conversations/{id}/team lists those of a conversation."),
    )
