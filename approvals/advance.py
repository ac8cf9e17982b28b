"""How far what was allowed in advance counts by now, for each of the rules of a conversation.

What accounts are by now is read once for all of them, however many there are: rules are read before each
call that writes. Which rules there are is `policyrules`'; who allows something for longer, `actions.grants`'.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from functools import cached_property

from accounts.models import Membership, Role, User
from accounts.persons import persons_behind
from accounts.reviewing import REVIEWING
from accounts.staff import has_staff_permission
from conversations.models import Conversation
from harness.rules import LevelledRule, conditions_of

from .consents import persons_of
from .models import PolicyRule
from .models.approval import CHANGE


def _nobody() -> Collection[int]:
    return ()


def as_they_count(
    rows: Iterable[PolicyRule],
    writers: Collection[int],
    telling: Callable[[], Collection[int]] = _nobody,
) -> list[LevelledRule]:
    """`writers`: the keys of those whose words the agent acts on. `telling`: of those who told it something
    by answers to its calls; asked only where that bears on one of these.

    What was allowed in advance meets a condition as long as each of those who allowed it may decide there,
    and could still meet it.

    What one of those who wrote allowed was somebody else's word then; about what she asks for herself it is
    none, be it through a service account. A reviewer's word is none once she is no reviewer any more, and of
    two people both must be there, and be two.
    """
    held = [(row, row.levelled()) for row in rows]
    bound = [row for row, rule in held if rule.grant is not None and conditions_of(rule.grant)]
    givers = _Givers(bound, writers, telling)
    return [_as_it_counts(row, rule, givers) for row, rule in held]


def _as_it_counts(row: PolicyRule, held: LevelledRule, by_now: _Givers) -> LevelledRule:
    if held.grant is None or not conditions_of(held.grant):
        return held
    givers = row.givers
    accounts = [by_now.accounts[key] for key in givers if key in by_now.accounts]
    complete = bool(givers) and len(accounts) == len(givers)
    reviewing = [one for one in accounts if by_now.reviews(one, row.organisation_id)]
    deciding = complete and all(one in reviewing or by_now.decides(one, row) for one in accounts)
    behind_now = {one.pk: givers[one.pk] | by_now.behind[one.pk] for one in accounts}
    several = persons_of((one, behind_now[one.pk]) for one in accounts) > 1
    grant = replace(
        held.grant,
        two_people=held.grant.two_people and deciding and several,
        reviewers_only=held.grant.reviewers_only and complete and len(reviewing) == len(givers),
        requester_may_not_decide=held.grant.requester_may_not_decide and deciding,
    )
    if grant.requester_may_not_decide:
        persons = {pk for one, behind_it in behind_now.items() for pk in (one, *behind_it)}
        if not persons.isdisjoint(by_now.asking):
            grant = replace(grant, requester_may_not_decide=False)
    return held if grant == held.grant else replace(held, grant=grant)


class _Givers:
    """Those who allowed any of these in advance, as they are by now, each fact read once at most."""

    def __init__(
        self,
        rows: Collection[PolicyRule],
        writers: Collection[int],
        telling: Callable[[], Collection[int]],
    ) -> None:
        self._rows = rows
        self._writers = writers
        self._telling = telling
        self._decidable: dict[int, set[int]] = {}

    @cached_property
    def accounts(self) -> dict[int, User]:
        """Those who are there and active, by their keys."""
        keys = {key for row in self._rows for key in row.givers}
        return {one.pk: one for one in User.objects.filter(pk__in=keys, is_active=True)}

    @cached_property
    def behind(self) -> dict[int, frozenset[int]]:
        """The keys of the persons behind each of them."""
        return {key: persons_behind(one) for key, one in self.accounts.items()}

    @cached_property
    def asking(self) -> set[int]:
        """The keys of those who wrote or told it something, and of the persons behind them."""
        asking = User.objects.filter(pk__in={*self._writers, *self._telling()})
        return {pk for one in asking for pk in (one.pk, *persons_behind(one))}

    def reviews(self, account: User, organisation: int | None) -> bool:
        """Whether she decides for others there, or as staff, which is bound to no organisation."""
        role = self._roles.get((account.pk, organisation))
        return role in REVIEWING or account.pk in self._staff

    def decides(self, account: User, row: PolicyRule) -> bool:
        """Whether she may answer calls where the rule holds, which are her own or in a conversation that is
        shared with her so."""
        if row.conversation_id is not None:
            return row.conversation_id in self._decidable_by(account)
        return account.pk == row.for_user_id and (account.pk, row.organisation_id) in self._roles

    @cached_property
    def _roles(self) -> dict[tuple[int, int | None], Role]:
        """By account and organisation."""
        rows = Membership.objects.filter(user__in=list(self.accounts))
        found = rows.values_list("user", "organisation", "role")
        return {(user, organisation): Role(role) for user, organisation, role in found}

    @cached_property
    def _staff(self) -> set[int]:
        return {key for key, one in self.accounts.items() if has_staff_permission(one, CHANGE)}

    def _decidable_by(self, account: User) -> set[int]:
        known = self._decidable.get(account.pk)
        if known is None:
            places = {row.conversation_id for row in self._rows if row.conversation_id is not None}
            rows = Conversation.objects.decidable_by(account).filter(pk__in=places)
            known = self._decidable[account.pk] = set(rows.values_list("pk", flat=True))
        return known
