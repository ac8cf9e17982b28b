"""Who holds a conversation's row lets others store what refers to it: PostgreSQL asks for the row then."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.sources import MODULES, nodes_of

DELETING = {
    "conversations/actions/conversations.py",
    "conversations/leavers.py",
    "conversations/removals.py",
}
"""These take the row away."""


def holding() -> Iterator[tuple[str, bool]]:
    """Where a conversation's row is held, and whether others may refer to it meanwhile."""
    for path in MODULES:
        for node in nodes_of(path):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="select_for_update", value=rows), keywords=words
                ):
                    if ast.unparse(rows).startswith("Conversation.objects"):
                        yield path.as_posix(), any(word.arg == "no_key" for word in words)
                case _:
                    pass


def test_a_held_conversation_keeps_nobody_from_storing_what_refers_to_it():
    found = list(holding())
    assert len(found) > 15
    assert {place for place, open_to_others in found if not open_to_others} == DELETING
