"""Which conversations a conversation descends from: those whose agents began it, up to the people's own; and
which descend from it."""

from __future__ import annotations

from django.db.models import Expression, Func, Subquery, Value

from jobs.prepared import Prepared

from .models import Conversation
from .models.conversation import ConversationQuerySet

MOST_ANCESTORS = 20
"""How far up a child's parents are looked for; deeper nesting is nobody's."""

_ABOVE = Prepared(lambda given: Conversation.objects.filter(pk=given.pk).values_list("parent_id"))


def ancestors(conversation: Conversation) -> list[int]:
    """The keys of those above, the nearest first."""
    found: list[int] = []
    parent = conversation.parent_id
    while parent is not None and len(found) < MOST_ANCESTORS:
        found.append(parent)
        (parent,) = _ABOVE.first(pk=parent) or (None,)
    return found


def root_of(conversation: Conversation) -> int:
    """The key of the conversation that people began."""
    above = ancestors(conversation)
    return above[-1] if above else conversation.pk


def root_conversation(conversation: Conversation) -> Conversation:
    """The conversation that people began, loaded: the given one itself, or what it descends from."""
    while conversation.parent is not None:
        conversation = conversation.parent
    return conversation


class TreeOf(Func):
    """For `pk__in=` in a query: the conversation with this key and all that descend from it, to any depth."""

    template = (
        "(WITH RECURSIVE tree(id) AS ("
        "SELECT top.id FROM conversations_conversation top WHERE top.id = %(expressions)s"
        " UNION SELECT below.id FROM conversations_conversation below"
        " JOIN tree ON below.parent_id = tree.id) SELECT tree.id FROM tree)"
    )

    def __init__(self, key: int | Expression) -> None:
        super().__init__(key if isinstance(key, Expression) else Value(key))


class WithAncestors(Subquery):
    """For `pk__in=` in a query: these conversations and all from which they descend."""

    template = (
        "(WITH RECURSIVE upwards(id) AS (%(subquery)s"
        " UNION SELECT each.parent_id FROM conversations_conversation each"
        " JOIN upwards ON each.id = upwards.id WHERE each.parent_id IS NOT NULL)"
        " SELECT upwards.id FROM upwards)"
    )

    def __init__(self, found: ConversationQuerySet) -> None:
        super().__init__(found.order_by().values("pk"))


def lock_tree(key: int) -> Conversation | None:
    """Lock it and all that descend from it, in one order for all who do; None where it is gone. Needs a
    transaction."""
    tree = Conversation.objects.filter(pk__in=TreeOf(key)).order_by("pk")
    return next((each for each in tree.select_for_update() if each.pk == key), None)


class WithDescendants(Subquery):
    """For `pk__in=` in a query: these conversations and all that descend from them, to any depth."""

    template = (
        "(WITH RECURSIVE downwards(id) AS (%(subquery)s"
        " UNION SELECT below.id FROM conversations_conversation below"
        " JOIN downwards ON below.parent_id = downwards.id)"
        " SELECT downwards.id FROM downwards)"
    )
