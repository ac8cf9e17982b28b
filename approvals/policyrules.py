"""The rules that hold in a conversation, from settings and the table, ready for `harness.policy`.

Those of the agent itself come with its version. Who may make which rule is `actions.rules`; how far what was
allowed in advance counts, `advance`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Exists, OuterRef, Q

from conversations.ancestry import ancestors, root_of
from conversations.models import Conversation
from conversations.writers import behind, others_wrote_around
from harness.agentconfig import ToolRule
from harness.rules import Level, LevelledRule, rules_from
from jobs.prepared import Given, Prepared

from .advance import as_they_count
from .models import PolicyRule
from .models.policyrule import PolicyRuleQuerySet
from .requesters import telling_in

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


def configured_for(_conversation: Conversation) -> tuple[LevelledRule, ...]:
    """Those of the settings, which hold everywhere."""
    return tuple(LevelledRule(rule, Level.DEPLOYMENT) for rule in deployment_rules())


def may_be_held() -> Q:
    """Whether there may be any of `held_for`: of the server or its organisation there is one, be it about
    another agent or person, or it is below another conversation, whose rules it has."""
    rules = PolicyRule.objects.active()
    here = Q(organisation=None) | Q(organisation=OuterRef("organisation"))
    return (
        Q(parent__isnull=False)
        | Q(Exists(rules.filter(here)))
        | Q(Exists(rules.filter(conversation=OuterRef("pk"))))
    )


def held_for(conversation: Conversation) -> tuple[LevelledRule, ...]:
    """Those of the table.

    What asks or denies in the conversations it descends from holds here too; what was allowed there
    does not.
    """
    above = ancestors(conversation)
    if others_wrote_around(conversation):
        held = _narrowed(conversation, above)
    else:
        rows = [
            row
            for row in _about(conversation, above)
            if row.conversation_id in {None, conversation.pk}
            or row.permission != PolicyRule.Permission.ALLOW
        ]
        held = as_they_count(rows, [conversation.owner_id], _telling(conversation))
    return tuple(held)


def rules_of_new(organisation: int, agent: int, owner: int) -> tuple[LevelledRule, ...]:
    """Those that would hold in a conversation of this person with this agent, begun now."""
    configured = [LevelledRule(rule, Level.DEPLOYMENT) for rule in deployment_rules()]
    rows = _OF_NEW.all(organisation=organisation, agent=agent, owner=owner)
    return (*configured, *as_they_count(rows, [owner]))


def _narrowed(conversation: Conversation, above: list[int]) -> list[LevelledRule]:
    """`held_for` where others than the owner wrote: what asks or denies for one of them holds for all of
    it, and what is allowed to one person alone is allowed to nobody. Agents say to each other what they were
    told, so it does wherever in their tree they wrote."""
    people = sorted(behind(conversation))
    agent = conversation.agent_version.agent_id
    rows = _at(conversation.organisation_id, agent, people, [conversation.pk, *above])
    holding = (
        row
        for row in rows.order_by("id")
        if row.permission != PolicyRule.Permission.ALLOW
        or (row.for_user_id is None and row.conversation_id in {None, conversation.pk})
    )
    return as_they_count(holding, people, _telling(conversation))


def _telling(conversation: Conversation) -> Callable[[], set[int]]:
    return lambda: telling_in(root_of(conversation))


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
