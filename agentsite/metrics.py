"""What /metrics answers: this process's counters, and what the tables know of all of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from django.db.models import Exists, OuterRef
from prometheus_client import REGISTRY as PROCESS
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from conversations.models import Conversation, Run
from jobs.engine import engine
from webhooks.models import WebhookDelivery, WebhookEndpoint

SHARED_DIRECTORY = "PROMETHEUS_MULTIPROC_DIR"
"""Where the processes of one server keep their numbers, when there are several behind one port."""


def exposition() -> bytes:
    """Prometheus text. Reads tables."""
    gauges = CollectorRegistry()
    gauges.register(_Tables())
    shared = os.environ.get(SHARED_DIRECTORY)
    if not shared:
        return bytes(generate_latest(PROCESS) + generate_latest(gauges))
    _forget_dead(Path(shared))
    processes = CollectorRegistry()
    MultiProcessCollector(processes)  # type: ignore[no-untyped-call]
    return bytes(generate_latest(processes) + generate_latest(gauges))


class _Tables:
    def collect(self) -> Iterable[GaugeMetricFamily]:
        running = Run.objects.filter(state=Run.State.RUNNING)
        yield GaugeMetricFamily(
            "agentsite_runs_claimed", "Conversations that some process runs.", running.count()
        )
        held = running.filter(conversation=OuterRef("pk"))
        waiting = Conversation.objects.filter(~Exists(held), owes_run=True)
        yield GaugeMetricFamily(
            "agentsite_conversations_waiting",
            "Conversations with something to do that no process runs yet.",
            waiting.count(),
        )
        yield GaugeMetricFamily(
            "agentsite_runs_waiting_here", "Wakes that wait for their turn here.", engine.waiting
        )
        yield GaugeMetricFamily(
            "agentsite_webhook_deliveries_waiting",
            "Deliveries of webhooks that are not settled.",
            WebhookDelivery.objects.unsettled().count(),
        )
        yield GaugeMetricFamily(
            "agentsite_webhook_deliveries_dead",
            "Deliveries of webhooks that were given up.",
            WebhookDelivery.objects.filter(state=WebhookDelivery.State.DEAD).count(),
        )
        yield GaugeMetricFamily(
            "agentsite_webhook_endpoints_off",
            "Webhook endpoints that are switched off.",
            WebhookEndpoint.objects.exclude(disabled_at=None).count(),
        )


def _forget_dead(directory: Path) -> None:
    for file in directory.glob("gauge_live*_*.db"):
        number = int(file.stem.rpartition("_")[2])
        if not Path(f"/proc/{number}").exists():
            mark_process_dead(number)  # type: ignore[no-untyped-call]
