"""Two processes begin what is due, are killed in the middle of it and start again: no due time is lost, and
none is begun twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from .tick_process import MINUTES, ORDERS

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300


def process(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AGENTSITE_", "ANTHROPIC_", "OPENAI_", "DJANGO_"))
    }
    settings = {
        "AGENTSITE_ENV_FILE": "",
        "AGENTSITE_DATA_DIR": str(folder),
        "AGENTSITE_SECRET_KEY": "only-for-tests-" + "0123456789" * 5,
        "AGENTSITE_VAULT_KEY": "b25seS1mb3ItdGVzdHMtb25seS1mb3ItdGVzdHMtLS0=",
        "AGENTSITE_MESSAGES_PER_MINUTE": "0",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "tests.schedules.tick_process", *arguments],
        cwd=ROOT,
        env={**kept, **settings},
        stdout=subprocess.PIPE,
        text=True,
    )


def ended(each: subprocess.Popen[str]) -> str:
    said, _ = each.communicate(timeout=PATIENCE)
    assert each.returncode == 0
    return said


def killed_after(each: subprocess.Popen[str], minute: int) -> None:
    """Killed at work on the minute behind this one."""
    assert each.stdout is not None
    for line in each.stdout:
        if int(line) == minute:
            break
    each.kill()
    each.communicate(timeout=PATIENCE)


def test_two_processes_that_are_killed_at_work_begin_each_due_time_once(tmp_path: Path) -> None:
    ended(process(tmp_path, "prepare"))
    first = [process(tmp_path, "tick", "0", str(MINUTES)) for _each in range(2)]
    killed_after(first[0], 4)
    killed_after(first[1], 9)
    # The second of them comes up with a clock that is behind.
    second = [process(tmp_path, "tick", begin, str(MINUTES)) for begin in ("8", "2")]
    for each in second:
        ended(each)

    found = json.loads(ended(process(tmp_path, "found")))
    runs = found["runs"]
    assert len(runs) == ORDERS
    assert len({(order, due) for order, due, _state, _session in runs}) == ORDERS
    assert {state for _order, _due, state, _session in runs} <= {"started", "succeeded"}
    assert len({session for *_rest, session in runs}) == ORDERS
    assert found["conversations"] == ORDERS
