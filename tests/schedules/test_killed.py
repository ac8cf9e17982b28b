"""Two processes begin what is due, are killed in the middle of it and start again: no due time is lost, and
none is begun twice. `python -m tests.schedules.chaos` does it with whole deployments."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .tick_process import MINUTES, ORDERS

ROOT = Path(__file__).resolve().parents[2]


class Site:
    """The process that has the others."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._said: list[Any] = []

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def hear(self, beginning: object) -> Any:
        """What is said with this beginning; the rest is kept for who asks for that."""
        assert self._process.stdout is not None
        while True:
            for number, said in enumerate(self._said):
                if said == beginning or (isinstance(said, list) and said[0] == beginning):
                    return self._said.pop(number)
            line = self._process.stdout.readline()
            assert line, "it has ended"
            self._said.append(json.loads(line))

    def begin(self, first: int, *more: str) -> int:
        """A process that looks from this minute on; its id."""
        self.tell(" ".join(("tick", str(first), str(MINUTES), *more)))
        return int(self.hear("begun")[1])

    def kill_after(self, pid: int, minute: int) -> None:
        """At work on the minute behind this one."""
        while self.hear(pid)[1] != minute:
            pass
        os.kill(pid, signal.SIGKILL)
        assert self.end_of(pid) == signal.SIGKILL

    def end_of(self, pid: int) -> int:
        self.tell(f"wait {pid}")
        return int(self.hear("ended")[1])

    def found(self) -> dict[str, Any]:
        self.tell("found")
        while True:
            assert self._process.stdout is not None
            said = json.loads(self._process.stdout.readline())
            if isinstance(said, dict):
                return said


@contextmanager
def site(folder: Path) -> Iterator[Site]:
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
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.schedules.tick_process"],
        cwd=ROOT,
        env={**kept, **settings},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Site(process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.mark.usefixtures("django_db_setup")
def test_two_processes_that_are_killed_at_work_begin_each_due_time_once(tmp_path: Path) -> None:
    with site(tmp_path) as processes:
        processes.hear("prepared")
        first = [processes.begin(0, "stay") for _each in range(2)]
        processes.kill_after(first[0], 2)
        processes.kill_after(first[1], 5)
        # The second of them comes up with a clock that is behind.
        for pid in [processes.begin(minute) for minute in (5, 1)]:
            assert processes.end_of(pid) == 0
        found = processes.found()

    runs = found["runs"]
    assert len(runs) == ORDERS
    assert len({(order, due) for order, due, _state, _session in runs}) == ORDERS
    assert {state for _order, _due, state, _session in runs} <= {"started", "succeeded"}
    assert len({session for *_rest, session in runs}) == ORDERS
    assert found["conversations"] == ORDERS
