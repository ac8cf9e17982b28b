"""Celery as the road between processes: one task, which hands a job over to the worker's engine.

The task is acknowledged when the job has begun. From then on not the broker but the job's own rows
(a lease, a sweep) make sure that it ends, so a lost, late or doubled message is harmless.
"""

from __future__ import annotations

import logging
from concurrent.futures import CancelledError
from typing import Any

from celery import Celery
from celery.exceptions import Reject
from django.conf import settings
from kombu.exceptions import KombuError

from . import here
from .registry import recurring

logger = logging.getLogger(__name__)

TASK = "jobs.run"

LONGEST_DELAY = 600.0
"""Seconds. A worker holds delayed messages in its memory; what is due later is left to its row."""


def transport_of(url: str) -> str | None:
    """Ours where it is Redis; None leaves the choice to Kombu."""
    return "jobs.redis_transport:Transport" if url.startswith(("redis://", "rediss://")) else None


app = Celery("agentsite")
app.conf.update(
    broker_url=settings.AGENTSITE_BROKER_URL,
    broker_transport=transport_of(settings.AGENTSITE_BROKER_URL),
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_connection_timeout=2,
    broker_transport_options={
        "socket_connect_timeout": 2,
        "socket_timeout": 30,
        "socket_keepalive": True,
    },
    accept_content=["json"],
    task_serializer="json",
    task_ignore_result=True,
    task_default_queue="agentsite",
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_publish_retry_policy={"max_retries": 1, "interval_start": 0, "interval_max": 0.1},
    worker_pool="threads",
    # Threads only hand over to the engine, or wait until it has room.
    worker_concurrency=4,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    # Nothing worth keeping on disk: every schedule is "every so many seconds".
    beat_scheduler="celery.beat:Scheduler",
    beat_max_loop_interval=5,
    enable_utc=True,
    timezone="UTC",
)


@app.task(name=TASK)  # type: ignore[untyped-decorator]
def run_job(name: str, arguments: dict[str, Any]) -> None:
    """Returns when the job has begun. A process that stops gives it back to the queue."""
    try:
        here.begin(name, arguments).result()
    except CancelledError:
        raise Reject("this process is stopping", requeue=True) from None


def send(name: str, arguments: dict[str, Any], delay: float) -> None:
    """Queue the job. A broker out of reach is noted, nothing more."""
    if delay > LONGEST_DELAY:
        return
    try:
        run_job.apply_async(
            kwargs={"name": name, "arguments": arguments}, countdown=delay if delay else None
        )
    except (KombuError, OSError) as problem:
        logger.warning(
            "job %s waits for the next sweep, the broker is out of reach: %s", name, problem
        )


def schedule_recurring() -> None:
    """Tell beat of the recurring jobs; one that nobody took in time is not worth running late."""
    app.conf.beat_schedule = {
        found.name: {
            "task": TASK,
            "schedule": float(found.seconds),
            "kwargs": {"name": found.name, "arguments": {}},
            "options": {"expires": found.seconds},
        }
        for found in recurring()
    }
