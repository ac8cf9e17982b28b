"""`celery -A agentsite worker` and `celery -A agentsite beat`: Celery's side of start and stop."""

from __future__ import annotations

import os
from typing import Any

import django
from celery.signals import setup_logging, worker_ready, worker_shutdown, worker_shutting_down
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentsite.settings")
django.setup()

# All need the apps that the line above made ready.
from agentsite.checks import refuse_unsafe_start  # noqa: E402
from agentsite.probeport import serve_in_thread  # noqa: E402
from agentsite.stopping import promise_end, stop_working  # noqa: E402
from jobs import here  # noqa: E402
from jobs.broker import app, schedule_recurring  # noqa: E402
from jobs.engine import engine  # noqa: E402
from jobs.garbage import collect_seldom  # noqa: E402

__all__ = ["app"]

refuse_unsafe_start()
schedule_recurring()


@setup_logging.connect  # type: ignore[untyped-decorator]
def _leave_logging_alone(**_kwargs: Any) -> None:
    """Connected, it keeps Celery from configuring what the settings have configured."""


@worker_ready.connect  # type: ignore[untyped-decorator]
def _come_up(**_kwargs: Any) -> None:
    if settings.AGENTSITE_METRICS_PORT:
        serve_in_thread(settings.AGENTSITE_METRICS_PORT)
    collect_seldom()
    here.start_recurring_once()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _stop_taking(**_kwargs: Any) -> None:
    promise_end()
    engine.start_draining()


@worker_shutdown.connect  # type: ignore[untyped-decorator]
def _drain(**_kwargs: Any) -> None:
    stop_working()
