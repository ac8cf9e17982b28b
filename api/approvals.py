"""`/api/approvals`: what waits for people, and whom it is handed to.

What the pages of the review queue do, by the same functions. Answers go through the socket or `/v1`.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from accounts.models import TokenScope
from approvals import queue as approvalqueue
from approvals.actions.approvals import assign_approval, note_seen
from approvals.models import Approval
from harness.errors import NotFound
from harness.refusals import not_among
from tools_app.touches import as_data

from .base import ApiView
from .bodies import read_body
from .pages import cursor_of, encode_cursor, limit_of, page
from .schema import CURSOR, LIMIT, answers, listed
from .serializers import ApprovalRow, Assignee

TAG = "Approvals"
ASSIGNED = (approvalqueue.FOR_ME, approvalqueue.FOR_NOBODY)


def approval_row(row: Approval) -> dict[str, Any]:
    return {
        "id": row.uid,
        "conversation_id": row.conversation.uid,
        "tool_use_id": row.call_uid,
        "tool": row.tool,
        "host": row.host,
        "input": row.effective_input,
        "acts_on": as_data(row.touches),
        "reason": row.reason,
        "risk": row.risk,
        "state": row.state,
        "needed": row.needed,
        "allowed": approvalqueue.people_who_allowed(row),
        "assignee": row.asked_first,
        "asked_at": row.asked_at,
        "expires_at": row.expires_at,
    }


class ApprovalsView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ}

    @extend_schema(
        operation_id="approvals_list",
        summary="List the calls that wait for people, the oldest first",
        description="Those one may see. What is listed and waits counts as seen in the audit log.",
        tags=[TAG],
        parameters=[
            OpenApiParameter("view", OpenApiTypes.STR, enum=list(approvalqueue.VIEWS)),
            OpenApiParameter(
                "assigned", OpenApiTypes.STR, enum=list(ASSIGNED), description="Handed to whom."
            ),
            LIMIT,
            CURSOR,
        ],
        responses=listed(ApprovalRow, 401, 403, 422),
    )
    def get(self, request: Any) -> Response:
        limit, cursor = limit_of(request), cursor_of(request, int)
        view = _chosen(request, "view", approvalqueue.VIEWS) or approvalqueue.WAITING
        assigned = _chosen(request, "assigned", ASSIGNED)
        rows = approvalqueue.chosen(self.actor, view, {"assigned": assigned})
        rows = self.narrowed(rows)
        if cursor:
            rows = rows.filter(pk__gt=cursor[0])
        found = list(approvalqueue.with_facts(rows.order_by("pk"))[: limit + 1])
        for each in found[:limit]:
            if each.is_waiting:
                note_seen(actor=self.actor, approval=each)
        more = encode_cursor(found[limit - 1].pk) if len(found) > limit else ""
        return page(request, [approval_row(each) for each in found[:limit]], more)


class AssignView(ApiView):
    scopes = {"POST": TokenScope.APPROVALS_DECIDE}

    @extend_schema(
        operation_id="approvals_assign",
        summary="Hand a call that waits to somebody, who is asked first",
        description="Who may answer does not change by that.",
        tags=[TAG],
        request=Assignee,
        responses=answers(ApprovalRow, 401, 403, 404, 409, 413, 422),
    )
    def post(self, request: Any, uid: str) -> Response:
        approval = approvalqueue.find(self.actor, uid)
        if approval not in self.narrowed(Approval.objects.filter(pk=approval.pk)):
            raise NotFound(
                _("There is no such approval."), hint=_("GET /api/approvals lists them.")
            )
        given = read_body(Assignee, request.data)
        user, role = approvalqueue.assignee_named(approval, given["assignee"])
        held = assign_approval(actor=self.actor, approval=approval, user=user, role=role)
        return Response(approval_row(held))


def _chosen(request: Any, name: str, choices: tuple[str, ...]) -> str:
    given = str(request.query_params.get(name, ""))
    if given and given not in choices:
        raise not_among(name, given, choices)
    return given
