"""The official runner's scenarios for servers, against the site with its fixtures mounted (`settings`)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conformance.runner import Result, Runner
from tests.contract.live import live_world

SECONDS = 900
LEFT_OUT = {
    "tools-call-sampling": "no client is asked for its model",
    "tools-call-elicitation": "no session is kept by this revision, so no answer finds its call over HTTP",
    "elicitation-sep1034-defaults": "the same",
    "elicitation-sep1330-enums": "the same",
}
"""Of the handshake revisions. From 2026-07-28 on questions come as rounds and tasks, which are tried."""
_LINE = re.compile(r"^[✓✗] (\S+): (\d+) passed, (\d+) failed", re.MULTILINE)


def tried(runner: Runner, address: str, revision: str) -> Iterator[Result]:
    """What came of a revision's scenarios; says which failed, and which are left out and why."""
    command = [*runner.call, "server", "--url", address, "--requirements", revision]
    made = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    found = [Result(name, int(p), int(f)) for name, p, f in _LINE.findall(made.stdout)]
    if not found:
        print(f"{revision}: the runner said nothing of any scenario: {made.stderr[-500:]}")
        yield Result(revision, 0, 1)
    for each in found:
        if each.scenario in LEFT_OUT:
            print(f"left out of {revision}: {each.scenario}: {LEFT_OUT[each.scenario]}")
            continue
        if each.failed:
            print(
                f"{revision}: {each.scenario}: {each.failed} of {each.passed + each.failed} failed"
            )
        yield each


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which the runner finds them, until the end."""
    token = folder / "token"
    settings = {
        "DJANGO_SETTINGS_MODULE": "tests.conformance.settings",
        "CONFORMANCE_TOKEN_FILE": str(token),
    }
    with live_world(folder, settings=settings) as world:
        token.write_text(world.tokens["alice"], encoding="ascii")
        yield f"{world.address.replace('127.0.0.1', 'localhost')}/mcp"
