"""The rules that hold in a conversation, from settings and the table, ready for `harness.policy`.

Those of the agent itself come with its version. Who may make which rule is `actions.rules`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Q

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

from .consents import persons_of
from .models import PolicyRule
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
    """What was allowed in advance meets a condition as long as each of those who allowed it may decide there,
    and could still meet it.

    What one of those who wrote allowed was somebody else's word then; about what she asks for herself it is
    none, be it through a service account. A reviewer's word is none once she is no reviewer any more, and of
    two people both must be there, and be two.
    """
    held = row.levelled()
    if held.grant is None or not conditions_of(held.grant):
        return held
    givers = row.givers
    accounts = list(User.objects.filter(pk__in=givers, is_active=True))
    complete = bool(givers) and len(accounts) == len(givers)
    reviewing = _reviewing(accounts, row.organisation_id)
    deciding = complete and all(one.pk in reviewing or _decides(one, row) for one in accounts)
    behind_now = {one.pk: givers[one.pk] | persons_behind(one) for one in accounts}
    several = persons_of((one, behind_now[one.pk]) for one in accounts) > 1
    grant = replace(
        held.grant,
        two_people=held.grant.two_people and deciding and several,
        reviewers_only=held.grant.reviewers_only and complete and len(reviewing) == len(givers),
        requester_may_not_decide=held.grant.requester_may_not_decide and deciding,
    )
    if grant.requester_may_not_decide:
        persons = {pk for one, behind_it in behind_now.items() for pk in (one, *behind_it)}
        asking = User.objects.filter(pk__in=writers)
        if not persons.isdisjoint(pk for one in asking for pk in (one.pk, *persons_behind(one))):
            grant = replace(grant, requester_may_not_decide=False)
    return held if grant == held.grant else replace(held, grant=grant)


def _reviewing(accounts: Sequence[User], organisation: int | None) -> set[int]:
    """The keys of those who decide for others there, or as staff, which is bound to no organisation."""
    rows = Membership.objects.filter(
        organisation=organisation, user__in=accounts, role__in=REVIEWING
    )
    there = set(rows.values_list("user", flat=True))
    return there | {one.pk for one in accounts if has_staff_permission(one, CHANGE)}


def _decides(account: User, row: PolicyRule) -> bool:
    """Whether she may answer calls where the rule holds, which are her own or in a conversation that is
    shared with her so."""
    if row.conversation_id is not None:
        rows = Conversation.objects.decidable_by(account)
        return rows.filter(pk=row.conversation_id).exists()
    belongs = Membership.objects.filter(organisation=row.organisation_id, user=account)
    return account.pk == row.for_user_id and belongs.exists()


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
