"""What a budget says of a call that it refuses is told in the reader's language."""

from __future__ import annotations

from typing import Any

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
    return refusal_of(conversation)


def refusal_of(conversation: Conversation) -> CapReached:
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
    left = {"reached", "spent", "raise", "conversation", "price", "this", "each", "are", "room"}
    assert not left & set(told.lower().replace("(", " ").replace(")", " ").split()), told
    assert in_words(refusal.message) == refusal.message


@pytest.mark.parametrize("unit", ["tokens", "money"])
@pytest.mark.parametrize("scope", [Budget.Scope.USER, Budget.Scope.PERSON])
def test_whoever_reads_a_conversation_is_told_no_figures_of_one_persons_budget(
    alice: User,
    acme: Organisation,
    staff: User,
    conversation: Conversation,
    scope: Budget.Scope,
    unit: str,
):
    organisation = acme if scope == Budget.Scope.USER else None
    given: dict[str, Any] = {
        "scope": scope,
        "unit": unit,
        "period": "day",
        "organisation": organisation,
    }
    set_budget(actor=staff, limit=1234, user=alice, **given)
    refused = refusal_of(conversation)
    assert "1,234" not in refused.message
    assert "$" not in refused.message
    assert "alice" in refused.message


def test_a_budget_is_said_to_be_reached_only_where_it_is(
    acme: Organisation, staff: User, conversation: Conversation
):
    given: dict[str, Any] = {
        "actor": staff,
        "scope": Budget.Scope.ORGANISATION,
        "organisation": acme,
        "unit": "tokens",
        "period": "day",
    }
    set_budget(limit=10_500, **given)
    message = refusal_of(conversation).message
    assert "reached" not in message
    assert message.startswith("The next call could go over the budget of 10,500 tokens a day")
    set_budget(limit=0, **given)
    assert "is reached" in refusal_of(conversation).message
