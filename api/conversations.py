"""`/api/conversations`: list, read, delete."""

from __future__ import annotations

from typing import Any

from django.db.models import Sum
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from accounts.models import TokenScope
from conversations.actions.background import cancel_all_background
from conversations.actions.branching import go_elsewhere
from conversations.actions.compacting import request_compaction
from conversations.actions.conversations import delete_conversation
from conversations.models import Conversation
from conversations.search import Hit
from keeping.actions.seen import mark_as_seen
from keeping.contextplans import Request as PlannedRequest
from keeping.contextplans import requests_of
from keeping.finding import understand
from keeping.unread import is_unread, with_unread
from programs.actions.sessions import fork_session
from spending.models import Usage

from .base import ApiView
from .bodies import read_body
from .facts import wire_effort
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, SEARCH, answers, errors, listed
from .serializers import (
    BackgroundEnded,
    Branched,
    Branching,
    Compacting,
    ContextPlans,
    ConversationDetail,
    ConversationRow,
    Deleted,
    Forked,
    Forking,
    Seeing,
    SeenUpTo,
)
from .transcript import messages_after, waiting

MOST_GENERATIONS = 10
"""Of conversations that agents began; what is spent further down is not looked for."""


class ConversationListView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ}

    @extend_schema(
        operation_id="conversations_list",
        summary="List one's conversations, newest first",
        tags=["Conversations"],
        parameters=[LIMIT, CURSOR, SEARCH],
        responses=listed(ConversationRow, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        asked = request.query_params.get("q", "")
        search = understand(self.actor, self.organisation, asked)
        own = self.narrowed(Conversation.objects.owned_by(self.actor))
        rows = with_unread(search.among(own, self.organisation), self.actor).order_by("-id")
        if cursor:
            rows = rows.filter(pk__lt=cursor[0])
        found = list(rows[: limit + 1])
        hits = search.hits(found[:limit])
        items = [
            {
                "id": each.uid,
                "title": each.title or None,
                "created_at": each.created_at,
                "message_count": each.message_count,
                "status": each.status,
                "unread": is_unread(each),
                "match": _match(hits.get(each.pk)),
            }
            for each in found[:limit]
        ]
        more = encode_cursor(found[limit - 1].pk) if len(found) > limit else ""
        return page(request, items, more)


class ConversationView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ, "DELETE": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_retrieve",
        summary="Read a conversation with its messages, oldest first",
        tags=["Conversations"],
        parameters=[LIMIT, CURSOR],
        responses=answers(ConversationDetail, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        conversation = self.find_conversation(uid)
        spoken, more = messages_after(conversation, cursor[0] if cursor else 0, limit)
        config, features = conversation.config, conversation.features
        agent = conversation.agent_version.agent
        spent = Usage.objects.filter(conversation__in=family(conversation)).aggregate(
            **{name: Sum(name, default=0) for name in Usage.TOKENS}
        )
        return Response(
            {
                "id": conversation.uid,
                "title": conversation.title or None,
                "system_prompt": conversation.overrides.get("instructions"),
                "preset": conversation.preset or agent.name,
                "preset_id": agent.uid,
                "enable_teams": features.teams,
                "enable_tracing": features.tracing,
                "enable_approval": features.approval,
                "enable_plan_mode": features.plan_mode,
                "enable_thinking": config.thinking,
                "thinking_effort": wire_effort(config.effort),
                "created_at": conversation.created_at,
                "status": conversation.status,
                "last_seq": conversation.last_seq,
                "messages": [message.payload() for message in spoken],
                "messages_cursor": encode_cursor(spoken[-1].seq) if more else None,
                "waiting_messages": waiting(conversation),
                "total_input_tokens": spent["input_tokens"]
                + spent["cache_creation_input_tokens"]
                + spent["cache_read_input_tokens"],
                "total_output_tokens": spent["output_tokens"],
            }
        )

    @extend_schema(
        operation_id="conversations_destroy",
        summary="Delete a conversation with its log and its files",
        description="Not while it is at work: cancel the turn first.",
        tags=["Conversations"],
        responses=answers(Deleted, 401, 403, 404, 409),
    )
    def delete(self, request: Any, uid: str) -> Response:
        delete_conversation(actor=self.actor, conversation=self.find_conversation(uid))
        return Response({"status": "deleted"})


class BranchView(ApiView):
    scopes = {"POST": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_branch",
        summary="Edit and send again, answer once more, go back, or choose a sibling branch",
        description="Only at rest: cancel the turn first. The log keeps everything.",
        tags=["Conversations"],
        request=Branching,
        responses=answers(Branched, 401, 403, 404, 409, 413, 422, 429),
    )
    def post(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        given = read_body(Branching, request.data)
        row = go_elsewhere(
            actor=self.actor,
            conversation=conversation,
            act=given["act"],
            event_uid=given["event_id"],
            content=given["content"],
            model=given["model"],
            files=given["files"],
        )
        return Response({"event_id": row.uid, "seq": row.seq})


class SeenView(ApiView):
    scopes = {"POST": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_seen",
        summary="Mark a conversation as seen, for oneself",
        description="Up to `seq`, or all of it. What comes to rest behind it is unread again.",
        tags=["Conversations"],
        request=Seeing,
        responses=answers(SeenUpTo, 401, 403, 404, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        seq = read_body(Seeing, request.data)["seq"]
        return Response(
            {"seen_seq": mark_as_seen(actor=self.actor, conversation=conversation, seq=seq)}
        )


class ForkView(ApiView):
    scopes = {"POST": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_fork",
        summary="Begin a conversation with a copy of the dialogue up to a place",
        description=(
            "Only at rest. Files come along as they were there, and rules that ask or deny; approvals and "
            "vaults do not."
        ),
        tags=["Conversations"],
        request=Forking,
        responses={201: Forked, **errors(401, 403, 404, 409, 422)},
    )
    def post(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        given = read_body(Forking, request.data)
        fork = fork_session(
            caller=getattr(request, "caller", None),
            actor=self.actor,
            conversation=conversation,
            event_uid=given["event_id"],
            title=given["title"],
        )
        return Response({"id": fork.uid}, status=201)


class ContextView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ, "POST": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_context",
        summary="What the newest requests to the model held, by source",
        tags=["Conversations"],
        responses=answers(ContextPlans, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        found = requests_of(self.find_conversation(uid))
        return Response({"requests": [_planned(each) for each in found]})

    @extend_schema(
        operation_id="conversations_compact",
        summary="Have older messages summarised at the next free moment",
        description="The log keeps all of them; an event tells the summary and what it took.",
        tags=["Conversations"],
        request=Compacting,
        responses=answers(Branched, 401, 403, 404, 409, 422, 429),
    )
    def post(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        given = read_body(Compacting, request.data)
        row = request_compaction(actor=self.actor, conversation=conversation, focus=given["focus"])
        return Response({"event_id": row.uid, "seq": row.seq})


def _planned(request: PlannedRequest) -> dict[str, Any]:
    plan = request.plan
    return {
        "id": request.uid,
        "seq": request.seq,
        "step": request.step,
        "model": request.model,
        "window": plan.window,
        "reserve": plan.reserve,
        "total": plan.total,
        "tokens": plan.tokens,
        "cut": list(plan.cut),
        "cleared": plan.cleared,
        "service": plan.service,
    }


class BackgroundView(ApiView):
    scopes = {"DELETE": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_background_destroy",
        summary="End all background commands of a conversation",
        tags=["Conversations"],
        responses=answers(BackgroundEnded, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str) -> Response:
        ended = cancel_all_background(actor=self.actor, conversation=self.find_conversation(uid))
        return Response({"ended": ended})


def _match(hit: Hit | None) -> dict[str, Any] | None:
    if hit is None:
        return None
    text = "".join(piece.text for piece in hit.pieces)
    return {"event_id": hit.event_uid, "text": text, "created_at": hit.at}


def family(conversation: Conversation) -> list[int]:
    """The conversation and those that its agents began: what they spent, it spent."""
    found = generation = [conversation.pk]
    for _number in range(MOST_GENERATIONS):
        children = Conversation.objects.filter(parent__in=generation)
        generation = list(children.values_list("pk", flat=True))
        if not generation:
            break
        found = [*found, *generation]
    return found
