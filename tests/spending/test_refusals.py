"""What a budget says of a call that it refuses is told in the reader's language."""

from __future__ import annotations

import pytest
from django.utils import translation

from accounts.models import Organisation, User
from chat.presentation.failures import in_words
from conversations.log import append
from conversations.models import Conversation
from harness.events import SpanModelRequestStart
from harness.history import Entry
from spending.actions.budgets import set_budget
from spending.budgets import CapReached
from spending.models import Budget
from tests.chat.drawing import conversation

__all__ = ["conversation"]


@pytest.fixture(
    params=[
        (Budget.Scope.DEPLOYMENT, "tokens", "day"),
        (Budget.Scope.PERSON, "tokens", "month"),
        (Budget.Scope.ORGANISATION, "tokens", "run"),
        (Budget.Scope.ORGANISATION, "money", "total"),
        (Budget.Scope.CONVERSATION, "tokens", "total"),
    ]
)
def refusal(
    request, db, alice: User, acme: Organisation, staff: User, conversation: Conversation
) -> CapReached:
    """What a budget without room says of a call."""
    scope, unit, period = request.param
    organisation = acme if scope == Budget.Scope.ORGANISATION else None
    about = conversation if scope == Budget.Scope.CONVERSATION else None
    set_budget(
        actor=staff,
        scope=scope,
        unit=unit,
        period=period,
        limit=1234,
        organisation=organisation,
        conversation=about,
    )
    call = SpanModelRequestStart(
        provider="scripted",
        model="m",
        server_keys=True,
        prompt_tokens_at_most=2000,
        output_tokens_at_most=9000,
    )
    with pytest.raises(CapReached) as raised:
        append(conversation.pk, [Entry.of(call)])
    return raised.value


@pytest.mark.parametrize("language", ["de", "ar"])
def test_no_refusal_of_a_budget_is_left_in_english(language: str, refusal: CapReached):
    with translation.override(language):
        told = f"{in_words(refusal.message)} {in_words(refusal.hint)}"
    left = {"reached", "spent", "raise", "conversation", "price", "this", "each"}
    assert not left & set(told.lower().replace("(", " ").replace(")", " ").split()), told
    assert in_words(refusal.message) == refusal.message
