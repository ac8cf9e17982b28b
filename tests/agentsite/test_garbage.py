"""Every kind of process that serves or works keeps what it has loaded out of garbage collection."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from agentsite.environment import BASE_DIR
from jobs.garbage import THRESHOLDS

BEGINNINGS = {
    "uvicorn": """
        import asyncio
        from agentsite.asgi import lifespan

        told = ["lifespan.startup", "lifespan.shutdown"]

        async def receive():
            if told == ["lifespan.shutdown"]:
                show()
            return {"type": told.pop(0)}

        async def send(message):
            pass

        asyncio.run(lifespan({}, receive, send))
    """,
    "daphne": """
        from agentsite import server

        class Server:
            def __init__(self, ready_callable, **_settings):
                self.ready = ready_callable

            def run(self):
                self.ready()
                show()

        server.Server = Server
        server.serve("127.0.0.1", 0, lambda: None)
    """,
    "celery": """
        from agentsite import celery
        from jobs import here

        here.start_recurring_once = lambda: None
        celery._come_up()
        show()
    """,
    "the first answer": """
        from conversations import kits
        from harness.providers.table import ProviderConfig

        assert "anthropic" not in sys.modules
        with kits.keeping_what_is_imported():
            kits.preload(ProviderConfig("anthropic", api_key="some"))
        assert "anthropic" in sys.modules
        show()
    """,
}


def shown(beginning: str) -> str:
    script = f"""
import gc, os, sys
import django
django.setup()

def show():
    print(gc.get_threshold(), gc.get_freeze_count() > 10_000, flush=True)
    os._exit(0)
{textwrap.dedent(beginning)}
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=BASE_DIR,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "agentsite.settings_test"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("kind", ["uvicorn", "daphne", "celery"])
def test_a_process_that_begins_keeps_what_it_has_loaded_and_collects_seldom(kind: str):
    assert shown(BEGINNINGS[kind]) == f"{THRESHOLDS} True"


def test_what_a_first_answer_imports_is_kept_as_well():
    assert shown(BEGINNINGS["the first answer"]).endswith(" True")
