"""`/api/chat`: begin a conversation, and ask for a ticket to its socket."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from accounts.api.authentication import Caller
from accounts.models import TokenScope
from agents.models import Agent
from approvals.decisions import require_decider, switches_off
from conversations.actions.conversations import create_conversation, find_agent
from conversations.actions.tickets import issue_ticket
from conversations.defaults import default_agent, default_environment
from harness.ids import new_conversation_id
from jobs.prepared import Prepared
from wire.fieldnames import written

from .base import ApiView
from .bodies import read_body
from .facts import wire_effort
from .schema import answers
from .serializers import BeginChat, ChatBegun, Ticket

FEATURES = {
    "enable_teams": "teams",
    "enable_tracing": "tracing",
    "enable_approval": "approval",
    "enable_plan_mode": "plan_mode",
}

_SHIPPED = Prepared(
    lambda given: (
        Agent.objects.visible_to(given.user)
        .usable_in(given.organisation)
        .on_offer()
        .select_related("current")
        .filter(seed_name=given.name)
    )
)


class ChatView(ApiView):
    scopes = {"POST": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="chat_create",
        summary="Begin a conversation",
        tags=["Conversations"],
        request=BeginChat,
        responses=answers(ChatBegun, 401, 403, 413, 422),
        examples=[
            OpenApiExample(
                "With a preset", {"preset": "Coding", "enable_approval": True}, request_only=True
            ),
            OpenApiExample(
                "Begun",
                {"conversation_id": "sesn_06abz3k9n1f5t7v9x1z3b5d7f9", "ignored": []},
                response_only=True,
            ),
        ],
    )
    def post(self, request: Any) -> Response:
        values = read_body(BeginChat, request.data, extra=True)
        features = {feature: values[name] for name, feature in FEATURES.items() if name in values}
        with written({"agent": "preset", "instructions": "system_prompt"}):
            agent = self._agent(values.get("preset") or "")
            uid, overrides = new_conversation_id(), _overrides(values)
            # One that is told otherwise keeps to the version in use, as it is created below.
            begun_with = agent.current if overrides else agent.drawn_for(uid)
            assert begun_with is not None, "on_offer() promises it"  # noqa: S101
            if switches_off(begun_with.config.features, features):
                require_decider(getattr(request, "caller", None))
            conversation = create_conversation(
                actor=self.actor,
                organisation=self.organisation,
                agent=agent,
                environment=default_environment(self.actor, self.organisation),
                features=features,
                overrides=overrides,
                uid=uid,
                preset=(values.get("preset") or "").replace("\0", ""),
            )
        ignored = sorted(set(request.data) - set(BeginChat().fields))
        return Response({"conversation_id": conversation.uid, "ignored": ignored})

    def _agent(self, wanted: str) -> Agent:
        """A preset by the id or name it has here, or by the name it was shipped under."""
        if not wanted:
            return default_agent(self.actor, self.organisation)
        wanted, where = wanted.replace("\0", ""), self.organisation
        shipped = _SHIPPED.first(user=self.actor.pk, organisation=where.pk, name=wanted)
        return shipped or find_agent(actor=self.actor, organisation=where, wanted=wanted)


def _overrides(values: dict[str, Any]) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    if values.get("system_prompt"):
        overrides["instructions"] = values["system_prompt"]
    if values.get("enable_thinking") is not None:
        overrides["thinking"] = values["enable_thinking"]
    if values.get("thinking_effort"):
        overrides["effort"] = wire_effort(values["thinking_effort"])
    return overrides


class TicketView(ApiView):
    scopes = {"POST": TokenScope.CONVERSATIONS_READ}

    @extend_schema(
        operation_id="chat_ticket_create",
        summary="Ask for a ticket to a conversation's socket",
        description=(
            "For clients that cannot send a header, a subprotocol or a first frame. The ticket goes "
            "into the socket's address as `?ticket=`, works once and for thirty seconds."
        ),
        tags=["Conversations"],
        request=None,
        responses=answers(Ticket, 401, 403, 404),
    )
    def post(self, request: Any, uid: str) -> Response:
        caller = getattr(request, "caller", None)
        by_token = isinstance(caller, Caller)
        issued = issue_ticket(
            actor=self.actor,
            conversation=self.find_conversation(uid),
            token_uid=caller.token.uid if isinstance(caller, Caller) else "",
            session_key="" if by_token else (request.session.session_key or ""),
        )
        return Response({"ticket": issued.secret, "expires_at": issued.expires_at})
