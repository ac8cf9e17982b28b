"""The examples of docs/api.md do what the page says, run in order as a reader would.

Those in TypeScript need what a test of the suite may not fetch: `tests.clients` runs them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.contract.conftest import World
from tests.examples import fences
from tests.journeys.site import ROOT


def test_every_example_of_the_page_runs(world: World, tmp_path: Path):
    examples = fences(ROOT / "docs" / "api.md", "sh", "python")
    assert len(examples) >= 7
    said = ""
    for number, (kind, code) in enumerate(examples, start=1):
        command = (
            ["bash", "-eu", "-o", "pipefail", "-c"] if kind == "sh" else [sys.executable, "-c"]
        )
        done = subprocess.run(
            [*command, code],
            cwd=tmp_path,
            env={
                "PATH": os.environ["PATH"],
                "AGENTSITE_URL": world.address,
                "AGENTSITE_TOKEN": world.tokens["alice"],
            },
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"example {number}\n{code}\n{done.stdout}{done.stderr}"
        said += done.stdout
    assert said.strip().endswith("end_turn")


def test_every_example_of_the_pages_is_run_by_some_test():
    """One in a language that nothing runs would be a promise nobody keeps."""
    run = {"sh", "python", "typescript"}
    for page in ("api.md", "agui.md", "api-chat.md", "webhooks.md"):
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        written = set(re.findall(r"^```(\w+)$", text, re.MULTILINE))
        assert written <= run | {"json", "text"}, page
