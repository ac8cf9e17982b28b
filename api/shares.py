"""`/api/conversations/{id}/shares`: who else may see a conversation."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from accounts.models import TokenScope
from conversations.actions.sharing import share_conversation, shares_of, unshare_conversation
from conversations.models import Share
from wire.fieldnames import written

from .base import ApiView
from .bodies import read_body
from .schema import answers, listed
from .serializers import Deleted, NewShare, ShareRow

TAG = "Conversations"


def share_row(share: Share) -> dict[str, Any]:
    return {
        "id": share.uid,
        "user": None if share.user is None else {"id": share.user.uid, "name": str(share.user)},
        "role": share.role,
        "created_at": share.created_at,
    }


class SharesView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ, "POST": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_shares_list",
        summary="List with whom a conversation is shared",
        tags=[TAG],
        responses=listed(ShareRow, 401, 403, 404),
    )
    def get(self, request: Any, uid: str) -> Response:
        found = shares_of(actor=self.actor, conversation=self.find_conversation(uid))
        return Response([share_row(each) for each in found])

    @extend_schema(
        operation_id="conversations_shares_create",
        summary="Share a conversation with a member of its organisation, or with all of them",
        description="Its owner alone may. Who has a role already has this one from now on.",
        tags=[TAG],
        request=NewShare,
        responses=answers(ShareRow, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        given = read_body(NewShare, request.data)
        with written({"user": "user_id"}):
            share = share_conversation(
                actor=self.actor,
                conversation=conversation,
                user_uid=given["user_id"] or "",
                role=given["role"],
            )
        return Response(share_row(share))


class OneShareView(ApiView):
    scopes = {"DELETE": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_shares_destroy",
        summary="End a share; what is open of the conversation there closes at once",
        tags=[TAG],
        responses=answers(Deleted, 401, 403, 404),
    )
    def delete(self, request: Any, uid: str, share: str) -> Response:
        unshare_conversation(
            actor=self.actor, conversation=self.find_conversation(uid), share_uid=share
        )
        return Response({"status": "deleted"})
