"""A script in a Python process of its own, with the tests' settings."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

from agentsite.environment import BASE_DIR


def run_script(script: str, *, patience: float) -> subprocess.CompletedProcess[str]:
    """How it ended. Raises `TimeoutExpired` if it does not, within so many seconds."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "agentsite.settings_test"},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience,
    )
