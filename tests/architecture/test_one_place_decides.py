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
        "approvals/actions/approvals.py",
        # These translate a request's body; `programs.actions.sending` hands it to the action.
        "agui/interrupts.py",
        "v1/incoming.py",
    },
    "ApprovalDecision.objects.create": {"approvals/actions/approvals.py"},
    "PolicyRule.objects.create": {
        "approvals/actions/grants.py",
        "approvals/actions/rules.py",
    },
    "grant_rule": {"approvals/actions/approvals.py"},
    # How many persons agree is counted once, for what runs and for what is shown.
    "persons_among": {"approvals/consents.py"},
}


def calls(tree: ast.AST) -> Iterator[str]:
    """Dotted names of what is called, outside of patterns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


@pytest.mark.parametrize("made", MAKERS)
def test_answers_and_permissions_are_made_and_counted_in_one_place_each(made: str) -> None:
    found = {
        str(path)
        for path in PRODUCT
        if any(name == made or name.endswith(f".{made}") for name in calls(parsed(path)))
    }

    assert found == MAKERS[made]
