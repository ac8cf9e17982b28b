"""Every kind of process that serves or works keeps what it has loaded out of garbage collection."""

from __future__ import annotations

import textwrap

import pytest

from jobs.garbage import THRESHOLDS
from tests.agentsite.processes import run_script

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
        from agentsite import guarded_daphne, server

        class Server:
            def __init__(self, ready_callable, **_settings):
                self.ready = ready_callable

            def run(self):
                self.ready()
                show()

        guarded_daphne.GuardedServer = Server
        server.serve("127.0.0.1", 0, lambda: None)
    """,
    "celery": """
        from agentsite import celery

        celery._come_up()
        show()
    """,
    "the first answer": """
        from django.conf import settings
        from django.db import connection
        from conversations.kits import preload_services
        from accounts.models import ProviderKey

        connection.settings_dict["NAME"] = ":memory:"
        with connection.schema_editor() as tables:
            tables.create_model(ProviderKey)
        settings.AGENTSITE_PROVIDER_KEYS = {"anthropic": {"key": "some"}}
        assert "anthropic" not in sys.modules
        preload_services()
        assert "anthropic" in sys.modules
        show()
    """,
}
SCRIPT = """
import gc, os, sys
import django
from django.apps import AppConfig

rested = []
before = AppConfig.import_models
AppConfig.import_models = lambda app: (rested.append(not gc.isenabled()), before(app))[1]
django.setup()

def show():
    print(all(rested) and gc.isenabled(), gc.get_threshold(), gc.get_freeze_count() > 10_000, flush=True)
    os._exit(0)
"""


def shown(kind: str) -> str:
    done = run_script(SCRIPT + textwrap.dedent(BEGINNINGS[kind]), patience=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("kind", ["uvicorn", "daphne", "celery"])
def test_a_process_collects_nothing_while_it_loads_and_seldom_after_that(kind: str):
    assert shown(kind) == f"True {THRESHOLDS} True"


def test_what_a_first_answer_imports_is_kept_as_well():
    assert shown("the first answer").endswith(" True")
