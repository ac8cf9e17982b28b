"""Which part of what there is to try a quick form tries: another with each commit.

So commit after commit all parts are tried, and a commit that fails fails again.
"""

from __future__ import annotations

import os
import subprocess

from agentsite.environment import BASE_DIR


def part_of(commit: str, parts: int) -> int:
    """One of `parts`, counted from nought: what a commit is found by says it."""
    return int(commit[:8] or "0", 16) % parts


def chosen_part(variable: str, parts: int) -> int:
    """The one that is asked for by this variable of the environment; without it, the commit's."""
    asked = os.environ.get(variable)
    return int(asked) % parts if asked else part_of(_commit(), parts)


def _commit() -> str:
    """The one that is checked out; empty where none is."""
    asked = ["git", "rev-parse", "--verify", "HEAD"]
    try:
        said = subprocess.run(asked, cwd=BASE_DIR, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""
