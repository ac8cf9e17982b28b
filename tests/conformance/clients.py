"""The official runner's scenarios for clients, against `client`: one after another, each at its revision.

Not by the runner's own `--requirements`, which starts a client for each of forty scenarios at once: their
starts alone then take longer than it waits. What is run is read from its list for the revision.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.conformance.runner import Result, Runner

SECONDS = 120
"""For one client; for the runner as a whole twice that. Only a hang takes longer."""
EARLIER = {
    "2025-03-26": (
        "auth/2025-03-26-oauth-metadata-backcompat",
        "auth/2025-03-26-oauth-endpoint-fallback",
    )
}
"""What the runner has for revisions of which it keeps no list."""
LEFT_OUT = {
    "elicitation-sep1034-client-defaults": "a question during a call, before 2026-07-28, is put away",
    "auth/client-credentials-jwt": "an extension: no agent has an account of its own at a server",
    "auth/client-credentials-basic": "the same",
    "auth/enterprise-managed-authorization": "an extension that is not taken part in",
    "auth/dpop": "the same",
    "auth/dpop-nonce": "the same",
    "auth/wif-jwt-bearer": "the same",
}


def tried(runner: Runner, revision: str, chosen: Sequence[str]) -> Iterator[Result]:
    """What came of each; says which failed, and which are left out and why."""
    for scenario in EARLIER.get(revision) or runner.asked_of_clients(revision):
        if chosen and scenario not in chosen:
            continue
        if scenario in LEFT_OUT:
            print(f"left out of {revision}: {scenario}: {LEFT_OUT[scenario]}")
            continue
        yield _run(runner, revision, scenario)


def _run(runner: Runner, revision: str, scenario: str) -> Result:
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        command = [
            *(*runner.call, "client"),
            *("--command", f"{sys.executable} -m tests.conformance.client"),
            *("--scenario", scenario, "--spec-version", revision),
            *("--timeout", str(SECONDS * 1000), "--output-dir", folder),
        ]
        code, told = _ended(command)
        checks = [
            check
            for file in Path(folder).rglob("checks.json")
            for check in json.loads(file.read_text(encoding="utf-8"))
        ]
    passed = sum(check["status"] == "SUCCESS" for check in checks)
    wrong = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
    failed = len(wrong) or int(code != 0 or not passed)
    if failed:
        print(f"{revision}: {scenario}: {failed} of {passed + failed} failed")
        for check in wrong:
            print(f"    {check['id']}: {check.get('errorMessage') or check['description']}")
        if not wrong:
            print(told[-2000:])
    return Result(scenario, passed, failed)


def _ended(command: Sequence[str]) -> tuple[int, str]:
    """How it ended and what it said; with all that it started, where it does not end by itself."""
    started = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        told, _nothing = started.communicate(timeout=2 * SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        told, _nothing = started.communicate()
        return 1, f"{told}\nIt did not end."
    return started.returncode, told
