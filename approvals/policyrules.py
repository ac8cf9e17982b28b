"""The rules that hold in a conversation, from settings and the table, ready for `harness.policy`.

Those of the agent itself come with its version. Who may make which rule is `actions.rules`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Q, QuerySet

from accounts.models import Membership, User
from accounts.persons import persons_behind
from accounts.reviewing import REVIEWING
from accounts.staff import has_staff_permission
from conversations.ancestry import ancestors
from conversations.models import Conversation
from conversations.writers import behind, others_wrote_around
from harness.agentconfig import ToolRule
from harness.rules import Level, LevelledRule, conditions_of, rules_from
from jobs.prepared import Given, Prepared

from .models import ApprovalDecision, PolicyRule
from .models.approval import CHANGE
from .models.policyrule import PolicyRuleQuerySet

_OF_NEW = Prepared(
    lambda given: _at(given.organisation, given.agent, [given.owner], []).order_by("id")
)


@cache
def _below(depth: int) -> Prepared[PolicyRule]:
    """Those about a conversation that descends from so many, which are given as `above0` and so on."""

    def rows(given: Given) -> PolicyRuleQuerySet:
        above = [getattr(given, f"above{place}") for place in range(depth)]
        here = [given.conversation, *above]
        return _at(given.organisation, given.agent, [given.owner], here).order_by("id")

    return Prepared(rows)


def deployment_rules() -> tuple[ToolRule, ...]:
    """Those of AGENTSITE_TOOL_RULES. Raises `ImproperlyConfigured` naming what is wrong there."""
    try:
        return rules_from(settings.AGENTSITE_TOOL_RULES)
    except ValueError as problem:
        raise ImproperlyConfigured(f"AGENTSITE_TOOL_RULES, {problem}") from problem


def rules_for(conversation: Conversation) -> tuple[LevelledRule, ...]:
    """Every rule but the agent's own that may bear on calls of this conversation, as of now.

    What asks or denies in the conversations it descends from holds here too; what was allowed there
    does not.
    """
    above = ancestors(conversation)
    if others_wrote_around(conversation):
        held = _narrowed(conversation, above)
    else:
        held = [
            _as_it_counts(row, [conversation.owner_id])
            for row in _about(conversation, above)
            if row.conversation_id in {None, conversation.pk}
            or row.permission != PolicyRule.Permission.ALLOW
        ]
    configured = [LevelledRule(rule, Level.DEPLOYMENT) for rule in deployment_rules()]
    return (*configured, *held)


def rules_of_new(organisation: int, agent: int, owner: int) -> tuple[LevelledRule, ...]:
    """Those that would hold in a conversation of this person with this agent, begun now."""
    configured = [LevelledRule(rule, Level.DEPLOYMENT) for rule in deployment_rules()]
    rows = _OF_NEW.all(organisation=organisation, agent=agent, owner=owner)
    return (*configured, *(_as_it_counts(row, [owner]) for row in rows))


def _narrowed(conversation: Conversation, above: list[int]) -> list[LevelledRule]:
    """`rules_for` where others than the owner wrote: what asks or denies for one of them holds for all of
    it, and what is allowed to one person alone is allowed to nobody. Agents say to each other what they were
    told, so it does wherever in their tree they wrote."""
    people = sorted(behind(conversation))
    agent = conversation.agent_version.agent_id
    rows = _at(conversation.organisation_id, agent, people, [conversation.pk, *above])
    return [
        _as_it_counts(row, people)
        for row in rows.order_by("id")
        if row.permission != PolicyRule.Permission.ALLOW
        or (row.for_user_id is None and row.conversation_id in {None, conversation.pk})
    ]


def _as_it_counts(row: PolicyRule, writers: Sequence[int]) -> LevelledRule:
    """What was allowed in advance meets a condition as long as those who allowed it could still meet it.

    What one of those who wrote allowed was somebody else's word then; about what she asks for herself it is
    none, be it through a service account. A reviewer's word is none once she is no reviewer any more, and of
    two people both must be there.
    """
    held = row.levelled()
    if held.grant is None or not conditions_of(held.grant):
        return held
    given = ApprovalDecision.objects.filter(
        approval=row.made_from_id, verdict=ApprovalDecision.Verdict.APPROVE
    )
    accounts = {row.made_by_id, *given.values_list("by", flat=True)}
    grant = replace(
        held.grant,
        two_people=held.grant.two_people and _all_belong(accounts, row.organisation_id),
        reviewers_only=held.grant.reviewers_only and _all_review(accounts, row.organisation_id),
    )
    if grant.requester_may_not_decide:
        givers = {*accounts}
        for persons in given.values_list("persons", flat=True):
            givers.update(persons)
        asking = User.objects.filter(pk__in=writers)
        if not givers.isdisjoint(pk for one in asking for pk in (one.pk, *persons_behind(one))):
            grant = replace(grant, requester_may_not_decide=False)
    return held if grant == held.grant else replace(held, grant=grant)


def _all_belong(accounts: Collection[int | None], organisation: int | None) -> bool:
    there = Membership.objects.filter(organisation=organisation, user__is_active=True)
    return _found(accounts, there.values_list("user", flat=True))


def _all_review(accounts: Collection[int | None], organisation: int | None) -> bool:
    there = Membership.objects.filter(
        organisation=organisation, user__is_active=True, role__in=REVIEWING
    )
    return _found(accounts, there.values_list("user", flat=True))


def _found(accounts: Collection[int | None], there: QuerySet[Any, int]) -> bool:
    """Whether all of them are there, or decide as staff, which is bound to no organisation."""
    missing = {*accounts} - {*there.filter(user__in=[pk for pk in accounts if pk is not None])}
    staff = User.objects.filter(pk__in=[pk for pk in missing if pk is not None])
    return None not in missing and missing == {
        one.pk for one in staff if has_staff_permission(one, CHANGE)
    }


def _about(conversation: Conversation, above: list[int]) -> Iterable[PolicyRule]:
    organisation, owner = conversation.organisation_id, conversation.owner_id
    agent = conversation.agent_version.agent_id
    named = {f"above{place}": key for place, key in enumerate(above)}
    return _below(len(above)).all(
        organisation=organisation, agent=agent, owner=owner, conversation=conversation.pk, **named
    )


def _at(
    organisation: int, agent: int, people: Sequence[int], conversations: list[int]
) -> PolicyRuleQuerySet:
    here = Q(organisation=organisation) | Q(organisation=None)
    place = (
        Q(scope=PolicyRule.Scope.DEPLOYMENT)
        | Q(scope=PolicyRule.Scope.ORGANISATION, organisation=organisation)
        | Q(scope=PolicyRule.Scope.AGENT, agent=agent) & here
    )
    for conversation in conversations:
        place |= Q(conversation=conversation)
    person = Q(for_user=None)
    for one in people:
        person |= Q(for_user=one)
    return PolicyRule.objects.active().filter(place & person)
