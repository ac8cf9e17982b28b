"""One worker process that carries many runs at once, each of them waiting for its model service: a hundred,
and with `make chaos` two hundred."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import psycopg

from agentsite.local_services import LocalRedis
from harness.messages import ModelRequest
from providers.scripted import Hold, reply, say
from tests.patience import PATIENCE
from tests.scale.deployment import Deployment, until

RUNS = 200 if os.environ.get("CHAOS") else 100
CONNECTIONS = 12
"""Of the pool: fewer than runs by far, and than the default."""
NAME = "the-worker"


class Connections(threading.Thread):
    """Looks again and again how many connections the worker holds; `most` is the highest number."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self._over = threading.Event()
        self.looks = self.most = 0

    def run(self) -> None:
        asked = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
        with psycopg.connect(self._url, autocommit=True) as line:
            while not self._over.wait(0.02):
                row = line.execute(asked, [NAME]).fetchone()
                assert row is not None
                self.looks += 1
                self.most = max(self.most, row[0])

    def stop(self) -> None:
        self._over.set()
        self.join(PATIENCE)


def test_one_worker_carries_a_hundred_runs_with_a_dozen_connections(
    tmp_path, new_database: Callable[[str], str], redis: LocalRedis
):
    """All of them are in mid-answer at the same moment, and every answer arrives whole."""
    holds: list[Hold] = []

    def answer(_request: ModelRequest) -> Any:
        holds.append(Hold())
        return reply(say("So far ", holds[-1], "and to the end."))

    url = new_database("many_runs")
    with Deployment(
        tmp_path,
        url,
        redis.url,
        answer,
        AGENTSITE_MESSAGES_PER_MINUTE=0,
        AGENTSITE_RUNS_PER_PERSON=0,
        # Renewing leases is part of the load; a machine with two processors is not what is tested.
        AGENTSITE_LEASE_SECONDS=30,
    ) as site:
        worker = site.worker(
            AGENTSITE_CONCURRENT_RUNS=str(RUNS),
            AGENTSITE_DATABASE_CONNECTIONS=str(CONNECTIONS),
            AGENTSITE_DATABASE_URL=f"{url}&application_name={NAME}",
        ).ready()
        connections = Connections(url)
        connections.start()
        uids = site.call("world", RUNS)["conversations"]
        for uid in uids:
            site.call("post", uid, "Go on and on.")

        def all_wait() -> bool:
            return len(holds) == RUNS and all(hold.reached.is_set() for hold in holds)

        until(all_wait, 240, lambda: f"{len(holds)} of {RUNS}\n{worker.said()}")
        assert site.call("running") == {worker.name: RUNS}
        for hold in holds:
            hold.release.set()
        for uid in uids:
            facts = site.rested(uid, seconds=240)
            assert facts["texts"] == ["So far and to the end."]
            assert [run["state"] for run in facts["runs"]] == ["rested"]
        connections.stop()
        assert len(holds) == RUNS, "nobody was asked twice"
        assert connections.looks > 100
        assert 1 < connections.most <= CONNECTIONS
        assert worker.process.poll() is None
