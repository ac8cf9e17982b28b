"""A conversation with all that descends from it: how each stands, what it used, and what its branch cost."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from django.db.models import Count, Sum

from chat.presentation.content import Moment
from conversations.ancestry import TreeOf
from conversations.models import Conversation
from jobs.prepared import Prepared
from reading.unseen import visible
from spending.amounts import money, number
from spending.models import Usage

from .models import Subagent

MOST = 500
"""Conversations of a tree that are shown."""


@dataclass(slots=True)
class Figures:
    """What was used. `unpriced`: some of it has no price, so the sum is the least it may be."""

    tokens: int = 0
    cost: Decimal = Decimal(0)
    unpriced: bool = False

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            self.tokens + other.tokens, self.cost + other.cost, self.unpriced or other.unpriced
        )

    @property
    def tokens_text(self) -> str:
        return number(self.tokens)

    @property
    def cost_text(self) -> str:
        return money(self.cost)


@dataclass(slots=True)
class Node:
    conversation: Conversation
    kind: str
    title: str
    state: str
    live: bool
    since: Moment | None
    own: Figures
    branch: Figures = field(default_factory=Figures)
    below: list[Node] = field(default_factory=list)

    @property
    def works_below(self) -> bool:
        return any(each.live or each.works_below for each in self.below)


_USED = Prepared(
    lambda given: (
        Usage.objects.filter(conversation__in=TreeOf(given.conversation))
        .order_by()
        .values("organisation")
        .annotate(calls=Count("id"), priced=Count("cost"), money=Sum("cost"))
        .annotate(**{f"of_{name}": Sum(name) for name in Usage.TOKENS})
        .values_list("calls", "priced", "money", *(f"of_{name}" for name in Usage.TOKENS))
    )
)


def branch_of(root: Conversation) -> Figures:
    """What it and all below it used, which is all of `tree_of` that costs one query."""
    rows = _USED.all(conversation=root.pk)
    each = (
        Figures(sum(tokens), money or Decimal(0), calls != priced)
        for calls, priced, money, *tokens in rows
    )
    return sum(each, Figures())


def tree_of(root: Conversation) -> Node:
    """The tree below a conversation, each with its own figures and its branch's."""
    rows = _descending_from(root)
    figures = _figures_of([row.pk for row in rows])
    last = _last_asked([row.pk for row in rows])
    nodes = {row.pk: _node(row, last.get(row.pk), figures[row.pk]) for row in rows}
    for row in rows[1:]:
        if row.parent_id in nodes:
            nodes[row.parent_id].below.append(nodes[row.pk])
    for row in reversed(rows):
        node = nodes[row.pk]
        node.branch = sum((each.branch for each in node.below), node.own)
    return nodes[root.pk]


def _descending_from(root: Conversation) -> list[Conversation]:
    found = [root]
    generation = [root.pk]
    while generation and len(found) < MOST:
        below = Conversation.objects.filter(parent__in=generation).order_by("pk")
        rows = list(below.select_related("agent_version__agent")[: MOST - len(found)])
        generation = [row.pk for row in rows]
        found += rows
    return found


def _figures_of(keys: list[int]) -> dict[int, Figures]:
    found: dict[int, Figures] = defaultdict(Figures)
    spent: Any = Usage.objects.filter(conversation__in=keys).order_by().values("conversation")
    sums = {name: Sum(name) for name in Usage.TOKENS}
    for each in spent.annotate(**sums, money=Sum("cost"), calls=Count("id"), priced=Count("cost")):
        found[each["conversation"]] = Figures(
            sum(each[name] or 0 for name in Usage.TOKENS),
            each["money"] or Decimal(0),
            each["calls"] != each["priced"],
        )
    return found


def _last_asked(keys: list[int]) -> dict[int, Subagent]:
    rows = Subagent.objects.filter(child__in=keys).order_by("pk")
    return {row.child_id: row for row in rows if row.child_id is not None}


def _node(row: Conversation, asked: Subagent | None, own: Figures) -> Node:
    state = asked.get_state_display() if asked is not None else row.get_status_display()
    return Node(
        conversation=row,
        kind=visible(asked.kind if asked is not None else row.agent_version.agent.name),
        title=visible(row.title),
        state=state,
        live=asked.is_live if asked is not None else row.is_running,
        since=Moment.of(asked.started_at) if asked is not None and asked.started_at else None,
        own=own,
    )
