"""What is promised on SQLite holds on PostgreSQL, with Redis between sockets and runs: the same tests.

A third of them, another with each commit; `SCALE_PART` names one, with `SCALE=all` all of them run.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentsite.environment import BASE_DIR
from tests.parts import chosen_part

SIDE_BY_SIDE = [
    "tests/teams_app/test_tasks.py",
    "tests/conversations/test_journal.py",
    "tests/conversations/test_runs.py",
    "tests/chat/test_socket_live.py",
    "tests/conversations/test_search.py",
    "tests/keeping/test_finding.py",
    "tests/memory/test_remembering.py",
    "tests/workers/test_leavers.py",
    "tests/workers/test_revoked_keys.py",
    "tests/workers/test_work.py",
    "tests/documents/test_documents.py::test_what_is_deleted_while_its_passages_are_written_goes_with_all_of_them",
]
MONEY_AND_ANSWERS = [
    "tests/spending/test_budgets.py",
    "tests/spending/test_budgets_rates.py",
    "tests/approvals/test_approval_property.py",
    "tests/approvals/test_approval_kills.py",
    "tests/approvals/test_approvals.py::test_of_answers_at_the_same_moment_exactly_one_counts",
    "tests/conversations/test_forgetting.py::test_a_brief_that_read_the_words_right_before_they_were_taken_out_keeps_nothing",
    "tests/recall/test_forgotten_while_asked.py",
    "tests/titles/test_titles.py",
    "tests/v1/test_v1_threads.py",
    "tests/jobs/test_prepared.py",
]
"""In a process of their own: they turn the site's time zone, and with it connections, round."""
UNDER_LOAD = [
    f"tests/scale/inside/{name}.py"
    for name in ("budgets", "caps", "claims", "database", "locks", "names", "postings")
]
"""Beside what runs: half of what each of these took in a process of its own was to begin."""


PARTS = 3


def in_part(names: list[str]) -> list[str]:
    if os.environ.get("SCALE") == "all":
        return names
    return names[chosen_part("SCALE_PART", PARTS) :: PARTS]


def run_tests(postgresql, template, redis, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "TEST_DATABASE_URL": postgresql.url,
        "TEST_DATABASE_TEMPLATE": template,
        "TEST_REDIS_URL": f"{redis.url}/3",
    }
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        env=environment,
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.parametrize(
    "modules",
    [in_part(SIDE_BY_SIDE) + UNDER_LOAD, in_part(MONEY_AND_ANSWERS)],
    ids=["runs", "money"],
)
def test_runs_sockets_and_search_keep_their_promises(postgresql, migrated, redis, modules):
    there = {name for name in modules if (BASE_DIR / name.partition("::")[0]).exists()}
    modules = [name for name in modules if name in there or name in UNDER_LOAD]
    done = run_tests(postgresql, migrated, redis, *modules)
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-2000:]}"
    assert "skipped" not in done.stdout
