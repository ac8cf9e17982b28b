"""Which budgets cap a conversation's calls, and who is charged for them.

What a call takes from them is `budgets`' part, how they stand `standings`'.
"""

from __future__ import annotations

from collections.abc import Sequence

from accounts.models import User
from accounts.persons import charged_person
from conversations.models import Conversation
from jobs.prepared import Prepared

from .models import Budget

_ANY = Prepared(
    lambda given: Budget.objects.filter(removed_at=None).order_by().values_list("pk")[:1]
)


def any_budget() -> bool:
    """Whether any budget is in force at all, whomever it caps."""
    return _ANY.exists()


def applying_to(
    conversation: Conversation,
    *,
    server_keys: bool,
    asker: int | None = None,
    payer: int | None = None,
) -> tuple[int, list[Budget]]:
    """Who is charged, and all that may cap it. `asker`: as `BudgetQuerySet.applying_to`."""
    asker = asker or conversation.asker_id
    # Most installations have none, and each model call asks twice.
    if not any_budget():
        return asker, []
    if payer is None:
        account = (
            conversation.owner if asker == conversation.owner_id else User.objects.get(pk=asker)
        )
        payer = charged_person(account, conversation.organisation_id)
    found = Budget.objects.applying_to(conversation, payer, asker=asker, server_keys=server_keys)
    return payer, list(found)


def without_replaced(budgets: Sequence[Budget]) -> list[Budget]:
    """Without what caps each person where there is one for just this person."""
    own = {
        (budget.unit, budget.period)
        for budget in budgets
        if budget.scope == Budget.Scope.PERSON and not budget.is_for_each
    }
    return [
        budget
        for budget in budgets
        if not (budget.is_for_each and (budget.unit, budget.period) in own)
    ]
