"""What recurs runs through on a fresh installation: a fault there is a line of the log that no page shows."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest

from agentsite.seeding import seed
from conversations import jobs as of_conversations
from jobs import registry
from jobs.engine import engine
from tests.patience import PATIENCE

Work = Callable[[], Coroutine[Any, Any, None]]

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_recurring_job_runs_through_and_has_nothing_to_complain_of(
    settings, tmp_path, monkeypatch, caplog
):
    settings.AGENTSITE_WORKSPACES_DIR = tmp_path / "workspaces"
    monkeypatch.setattr(of_conversations, "PRELOAD_AFTER", 0)
    found = [job for job in registry._jobs.values() if job.every]
    assert len(found) > 30
    for job in found:
        setattr(settings, job.every, 60)
    seed()
    with caplog.at_level(logging.WARNING):
        for job in found:
            engine.submit(cast("Work", job.function)).result(PATIENCE)
    assert [record.getMessage() for record in caplog.records] == []
