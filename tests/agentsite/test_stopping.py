"""A process that is told to stop ends, whatever it is at."""

from __future__ import annotations

import subprocess

from tests.agentsite.processes import run_script
from tests.patience import PATIENCE

STUCK = """
    import threading, time
    import django
    django.setup()
    from django.conf import settings
    from agentsite import stopping
    from jobs.engine import engine

    settings.AGENTSITE_DRAIN_SECONDS = 1
    stopping.LAST_SECONDS = 2
    begun = threading.Event()

    def forever():
        begun.set()
        time.sleep(600)

    async def work():
        await engine.{where}(forever)

    engine.begin("stuck", work).result(60)
    begun.wait(60)
    stopping.promise_end()
    stopping.stop_working()
    print("stopped", flush=True)
"""


def ends(where: str) -> subprocess.CompletedProcess[str]:
    """Raises TimeoutExpired if it does not."""
    return run_script(STUCK.replace("{where}", where), patience=PATIENCE)


def test_a_tool_that_never_returns_does_not_keep_a_process_that_is_told_to_stop():
    done = ends("in_tool_thread")
    assert "did not come to its end" in done.stderr + done.stdout
    assert "in forever" in done.stderr, "it says what held it"
    assert done.returncode == 1


def test_a_query_that_never_returns_does_not_either():
    done = ends("in_database")
    assert done.returncode == 1
    assert "in forever" in done.stderr
