"""Whatever allows a waiting call goes through one action, which alone knows who may.

A road of its own would be one on which persons are not counted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from .sources import PRODUCT, parsed

MAKERS = {
    # What is stored as an answer, and what a rule is saved with.
    "UserToolConfirmation": {
        "conversations/actions/approvals.py",
        # These translate a request's body; `actions.sending` hands it to the action.
        "conversations/agui/interrupts.py",
        "conversations/v1/incoming.py",
    },
    "ApprovalDecision.objects.create": {"conversations/actions/approvals.py"},
    "PolicyRule.objects.create": {
        "conversations/actions/grants.py",
        "conversations/actions/rules.py",
    },
    "grant_rule": {"conversations/actions/approvals.py"},
}


def calls(tree: ast.AST) -> Iterator[str]:
    """Dotted names of what is called, outside of patterns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


@pytest.mark.parametrize("made", MAKERS)
def test_an_answer_and_a_permission_are_made_in_their_actions_alone(made: str) -> None:
    found = {
        str(path)
        for path in PRODUCT
        if any(name == made or name.endswith(f".{made}") for name in calls(parsed(path)))
    }

    assert found == MAKERS[made]
