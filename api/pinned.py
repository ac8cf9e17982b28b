"""`/api/conversations/{id}/pinned`: messages and answers that stay before the agent word for word."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.models import TokenScope
from conversations.models import Conversation
from keeping.actions.pinning import pin_message
from keeping.pinnedmessages import pinned_in

from .base import ApiView
from .bodies import read_body
from .schema import listed
from .serializers import StrictSwitch, StrictText

TAG = "Conversations"


class PinnedMessage(serializers.Serializer[Any]):
    event_id = serializers.CharField()
    by = serializers.CharField(help_text="`person` or `agent`.")
    text = serializers.CharField()


class Pinning(serializers.Serializer[Any]):
    event_id = StrictText(max_length=60, help_text="Of a message or an answer.")
    pinned = StrictSwitch(required=False, help_text="false: let go of it.")


class PinnedView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ, "POST": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_pinned_list",
        summary="List the pinned messages of the branch that counts",
        tags=[TAG],
        responses=listed(PinnedMessage, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        return self._told(self.find_conversation(uid))

    @extend_schema(
        operation_id="conversations_pinned_create",
        summary="Pin a message or an answer, or let go of it",
        description="It outlives summaries word for word. Answers all that is pinned then.",
        tags=[TAG],
        request=Pinning,
        responses=listed(PinnedMessage, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        given = read_body(Pinning, request.data)
        pin_message(
            actor=self.actor,
            conversation=conversation,
            event_uid=given["event_id"],
            pinned=given.get("pinned", True),
        )
        return self._told(conversation)

    def _told(self, conversation: Conversation) -> Response:
        return Response(
            [
                {
                    "event_id": each.subject,
                    "by": "agent" if each.by_agent else "person",
                    "text": each.text,
                }
                for each in pinned_in(conversation)
            ]
        )
