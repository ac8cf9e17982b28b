"""Whose consent to a waiting call counts, and how many persons have agreed by it.

The one place that counts them: for letting the call run, and for what the log, the pages and the audit
log say. Who may answer is `deciders`' to say; answers are stored by `actions.approvals`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from accounts.models import User
from accounts.persons import persons_among, persons_behind
from harness.rules import Condition

from .deciders import may_answer_now, may_not_allow, reviews
from .models import Approval, ApprovalDecision
from .requesters import also_requesting, having_told, writing


@dataclass(frozen=True, slots=True)
class Consent:
    """One that counts."""

    decision: ApprovalDecision
    by: User
    behind: frozenset[int]
    """Whoever could have spoken through the account when it answered, or could by now."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """All consents to one input that count."""

    consents: tuple[Consent, ...]

    @property
    def persons(self) -> int:
        """How many different persons have at least agreed."""
        return persons_of((one.by, one.behind) for one in self.consents)


def persons_of(given: Iterable[tuple[User, frozenset[int]]]) -> int:
    """How many different persons at least have agreed through these accounts, each with all behind it."""
    known = list(given)
    people = [account.pk for account, _behind in known if not account.is_service]
    return persons_among(people, [behind for account, behind in known if account.is_service])


def agreement(approval: Approval, on: str = "") -> Agreement:
    """Who agrees to the question as it is put now; `on`: to the input of this hash instead.

    What an account said counts as long as it could still say it: it is there, active, and may answer.
    """
    given = ApprovalDecision.objects.filter(
        approval=approval,
        round=approval.round,
        verdict=ApprovalDecision.Verdict.APPROVE,
        input_sha256=on or approval.effective_sha256,
    ).select_related("by")
    return Agreement(
        tuple(
            Consent(one, one.by, frozenset(one.persons) | persons_behind(one.by))
            for one in given
            if one.by is not None
            and may_answer_now(one.by, approval)
            and not may_not_allow(one.by, approval, one.input_sha256)
        )
    )


def conditions_met(approval: Approval, agreed: Agreement) -> tuple[Condition, ...]:
    """Those that hold for an approval which was allowed so, asked for or not."""
    others = {*also_requesting(approval), *having_told(approval)}
    for one in agreed.consents:
        others |= writing(approval, one.decision.input_sha256)
    requesting = {
        approval.requested_by,
        *approval.also_requested_by.all(),
        *User.objects.filter(pk__in=others),
    }
    requester = {pk for one in requesting for pk in (one.pk, *persons_behind(one))}
    held: dict[Condition, bool] = {
        "two_people": agreed.persons > 1,
        "reviewers_only": all(reviews(one.by, approval) for one in agreed.consents),
        "requester_may_not_decide": all(
            requester.isdisjoint({one.by.pk, *one.behind}) for one in agreed.consents
        ),
    }
    return tuple(name for name, holds in held.items() if holds)
