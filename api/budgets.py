"""`/api/conversations/{id}/budgets`: what a conversation and its runs may use, for programs.

Amounts are whole numbers: tokens, or millionths of a US dollar. Who may set what is `actions.budgets`'.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from accounts.models import TokenScope
from conversations.actions.own import require_own
from conversations.models import Conversation
from harness.errors import NotFound
from spending.actions.budgets import remove_budget, set_budget
from spending.amounts import MONEY, units_of_millionths, whole_millionths_of
from spending.models import Budget
from spending.standings import Standing, standing

from .base import ApiView
from .bodies import read_body
from .schema import listed
from .serializers import BudgetRow, NewBudget

TAG = "Conversations"


def budget_row(each: Standing) -> dict[str, Any]:
    def shown(amount: int) -> int:
        return whole_millionths_of(amount) if each.unit == MONEY else amount

    return {
        "name": each.name,
        "scope": each.scope.name.lower(),
        "unit": each.unit,
        "period": each.period,
        "limit": shown(each.limit),
        "spent": shown(each.spent),
        "reserved": shown(each.reserved),
        "ends_on": each.ends_on,
    }


class BudgetsView(ApiView):
    scopes = {"GET": TokenScope.CONVERSATIONS_READ, "PUT": TokenScope.CONVERSATIONS_WRITE}

    @extend_schema(
        operation_id="conversations_budgets_list",
        summary="List the budgets that a conversation's calls count against, widest first",
        description="Of a budget for each run: how its latest run stands.",
        tags=[TAG],
        responses=listed(BudgetRow, 401, 403, 404, 422),
    )
    def get(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        require_own(self.actor, conversation)
        return self._response(conversation)

    @extend_schema(
        operation_id="conversations_budgets_update",
        summary="Set or lift a budget of a conversation, or of each of its runs",
        description="Its owner stays within what the organisation allows. With null it is lifted.",
        tags=[TAG],
        request=NewBudget,
        responses=listed(BudgetRow, 401, 403, 404, 413, 422),
    )
    def put(self, request: Any, uid: str) -> Response:
        conversation = self.find_conversation(uid)
        given = read_body(NewBudget, request.data)
        unit, period, limit = given["unit"], given["period"], given["limit"]
        if limit is None:
            remove_budget(actor=self.actor, budget=_held(conversation, unit, period))
        else:
            set_budget(
                actor=self.actor,
                scope=Budget.Scope.CONVERSATION,
                conversation=conversation,
                unit=unit,
                period=period,
                limit=units_of_millionths(limit) if unit == MONEY else limit,
            )
        return self._response(conversation)

    def _response(self, conversation: Conversation) -> Response:
        return Response([budget_row(each) for each in standing(conversation)])


def _held(conversation: Conversation, unit: str, period: str) -> Budget:
    found = conversation.budgets.filter(removed_at=None, unit=unit, period=period).first()
    if found is None:
        raise NotFound(
            _("The conversation has no such budget."),
            hint=_("GET lists those that hold; “conversation” are its own."),
        )
    return found
