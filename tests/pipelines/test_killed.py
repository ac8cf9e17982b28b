"""A run goes on where it was, wherever its process is killed, and does no step twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PATIENCE = 900
ONCE = ["research", "calculate", "write", "review"]
REVIEWED = ["route", *ONCE, *ONCE]
ORCHESTRATED = ["orchestrate", *ONCE[:2], "orchestrate", *ONCE[2:], "orchestrate"]


# Each form dies at the steps at which the other lives.
FIRSTS = {"reviewed-answer": 1, "orchestrated-answer": 1, "reviewed-answer-langgraph": 2}
"""By example, the step at which its first process dies."""


@pytest.mark.usefixtures("django_db_setup")  # to be copied from
def test_a_run_whose_process_is_killed_again_and_again_does_each_step_once(
    tmp_path: Path,
) -> None:
    examples = [f"{example}={first}" for example, first in FIRSTS.items()]
    done = subprocess.run(
        [sys.executable, "-m", "tests.pipelines.killed", str(tmp_path), *examples],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env={name: value for name, value in os.environ.items() if not name.startswith("TEST_")},
        cwd=Path(__file__).resolve().parents[2],
    )

    assert done.returncode == 0, done.stderr
    for example, found in zip(FIRSTS, json.loads(done.stdout), strict=True):
        names = ORCHESTRATED if example == "orchestrated-answer" else REVIEWED
        assert found["killed"] >= len(names) // 2, "there was a death at every second step"
        assert found["state"] == "done", done.stderr
        assert found["steps"] == [[name, "done"] for name in names]
        kept = len(names) + 2 if "langgraph" in example else 0
        assert found["checkpoints"] == kept, "its beginning, each node, its entrance"
        assert found["conversations"] == len(names)
        assert found["asked"] == [1] * len(names)
        assert found["rests"] == [1] * len(names)
