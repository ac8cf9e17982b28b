"""Who holds the row of a conversation or an organisation lets others store what refers to it, for which
PostgreSQL asks for the row as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.sources import MODULES, nodes_of

DELETING = {
    "accounts/actions/own_account.py",
    "accounts/leaving.py",
    "conversations/actions/conversations.py",
    "conversations/leavers.py",
    "conversations/removals.py",
    "evals/actions/deleting.py",
    "spending/deletions.py",
}
"""These take the row away, and nobody is to refer to it any more."""


def holding() -> Iterator[tuple[str, bool]]:
    """Where such a row is held, and whether others may refer to it meanwhile."""
    for path in MODULES:
        for node in nodes_of(path):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="select_for_update", value=rows), keywords=words
                ):
                    if ast.unparse(rows).startswith(
                        ("Conversation.objects", "Organisation.objects")
                    ):
                        yield path.as_posix(), any(word.arg == "no_key" for word in words)
                case _:
                    pass


def test_a_held_row_keeps_nobody_from_storing_what_refers_to_it():
    found = list(holding())
    assert len(found) > 15
    assert {place for place, open_to_others in found if not open_to_others} == DELETING
