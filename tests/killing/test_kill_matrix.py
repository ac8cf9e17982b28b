"""The quick form of `make kill-matrix`: every few commit points, in both forms a deployment has."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LEAST_POINTS = 2  # the trees and analyses of the quick form are short


@pytest.mark.parametrize(
    "form",
    [
        ["--every", "45", "--branches", "--mcp"],
        ["--every", "48", "--compaction", "--database", "postgresql", "--process", "worker"],
        ["--every", "45", "--composed"],
        ["--every", "180", "--tree"],
        ["--every", "30", "--analysis"],
    ],
    ids=["web-sqlite", "worker-postgresql", "composed-skill", "tree-of-subagents", "analysis"],
)
@pytest.mark.usefixtures("django_db_setup")  # to be copied from
def test_a_conversation_killed_at_a_commit_point_finishes_by_itself_after_a_restart(form):
    """Nothing lost, nothing repeated."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.killing", *form],
        capture_output=True,
        text=True,
        timeout=1800,
        env={name: value for name, value in os.environ.items() if not name.startswith("TEST_")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lost: 0, repeated: 0, failed: 0" in done.stdout
    points = int(done.stdout.rpartition("points: ")[2].partition(",")[0])
    assert points >= LEAST_POINTS, "the matrix found its points"
