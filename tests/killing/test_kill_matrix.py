"""The quick form of `make kill-matrix`, in both forms a deployment has: of each one commit point, another
with each commit (`tests.parts`; `KILL_PART=7` names one)."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.parts import chosen_part

ALONE = (
    (("--branches", "--mcp"), 48),
    (("--composed",), 48),
    (("--tree",), 100),
    (("--analysis",), 20),
)
MANY = ((("--compaction", "--database", "postgresql", "--process", "worker"), 48),)
"""Each form, and how many commit points it has at least."""


@pytest.mark.parametrize("forms", [ALONE, MANY], ids=["web-sqlite", "worker-postgresql"])
@pytest.mark.usefixtures("django_db_setup")  # to be copied from
def test_a_conversation_killed_at_a_commit_point_finishes_by_itself_after_a_restart(forms):
    """Nothing lost, nothing repeated; killed right before the commit and right after it."""
    asked: list[str] = []
    for form, least in forms:
        point = str(1 + chosen_part("KILL_PART", least))
        asked += ["--and", *form, "--first", point, "--last", point]
    done = subprocess.run(
        [sys.executable, "-m", "tests.killing", *asked[1:]],
        capture_output=True,
        text=True,
        timeout=1800,
        env={name: value for name, value in os.environ.items() if not name.startswith("TEST_")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    of_each = "points: 2, lost: 0, repeated: 0, failed: 0"
    assert done.stdout.count(of_each) == len(forms), done.stdout
