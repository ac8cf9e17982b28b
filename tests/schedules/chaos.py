"""Schedules while processes die: two workers and two beats begin what is due, are killed one after the other,
and Redis restarts. No due time is lost, none is begun twice, and each run's conversation comes to its end.

    python -m tests.schedules.chaos [--orders 200] [--seconds 240] [--seed 1]

Long and greedy for processors: it is no part of the test suite, which has `test_killed.py` for the same
claim.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "agentsite.settings_test"
os.environ["AGENTSITE_ENV_FILE"] = ""
django.setup()

from agentsite.local_services import LocalPostgreSQL, LocalRedis  # noqa: E402
from harness.messages import ModelRequest  # noqa: E402
from providers.scripted import reply, say  # noqa: E402
from tests.scale.deployment import Deployment, Member  # noqa: E402

SETTLE_SECONDS = 1_500
BETWEEN_KILLS = (6.0, 12.0)
"""Seconds; a process that comes up needs longer on a slow machine, and is waited for."""


def answer(_request: ModelRequest) -> Any:
    return reply(say("All is quiet."))


class Kills:
    """One process after another, each of them before one a second time; Redis once, in the midst."""

    def __init__(self, members: list[Member], redis: LocalRedis, chance: random.Random) -> None:
        self._members, self._redis, self._chance = members, redis, chance
        self._left: list[Member] = []
        self.count = self.restarts = 0

    def one(self) -> None:
        if not self._left:
            self._left = self._chance.sample(self._members, len(self._members))
        member = self._left.pop()
        if member.port:
            # One that was not there yet has nothing to lose.
            member.ready()
        member.kill()
        self.count += 1
        time.sleep(0.5)
        member.start()

    def redis(self) -> None:
        self._redis.stop()
        time.sleep(1)
        self._redis.start()
        self.restarts += 1


def run(orders: int, seconds: int, chance: random.Random) -> dict[str, Any]:
    """What was due and what became of it."""
    with tempfile.TemporaryDirectory(prefix="agentsite-chaos-") as directory:
        place = Path(directory)
        place.chmod(0o755)  # PostgreSQL runs as somebody else where this runs as root
        database, redis = LocalPostgreSQL(place), LocalRedis()
        database.start()
        redis.start()
        try:
            with Deployment(
                place,
                database.make("chaos"),
                redis.url,
                answer,
                AGENTSITE_MESSAGES_PER_MINUTE=0,
                AGENTSITE_SCHEDULES=orders,
                AGENTSITE_SCHEDULE_SECONDS=1,
                AGENTSITE_SWEEP_SECONDS=3,
            ) as site:
                return _drive(site, redis, orders, seconds, chance)
        finally:
            redis.stop()
            database.stop()


def _drive(
    site: Deployment, redis: LocalRedis, orders: int, seconds: int, chance: random.Random
) -> dict[str, Any]:
    workers, beats = [site.worker(), site.worker()], [site.beat(), site.beat()]
    for worker in workers:
        worker.ready()
    began = time.time()
    made = site.call("schedules", orders, seconds, chance.randrange(2**31))
    kills = Kills([*workers, *beats], redis, chance)
    while (passed := time.time() - began) < seconds:
        time.sleep(chance.uniform(*BETWEEN_KILLS))
        kills.one()
        if passed > seconds / 2 and not kills.restarts:
            kills.redis()
        sys.stderr.write(f"{passed:.0f} s: {kills.count} kills\n")
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        facts: dict[str, Any] = site.call("schedule_facts", made["until"])
        if not facts["open"] or time.monotonic() > end:
            break
        time.sleep(2)
    unhappy = [
        line
        for log in site.directory.glob("*.log")
        for line in log.read_text(errors="replace").splitlines()
        if re.search(r"Traceback|could not begin|was not (taken|settled)", line)
    ]
    return {
        "orders": orders,
        "due": facts["due"],
        "kills": kills.count,
        "redis_restarts": kills.restarts,
        "seconds": round(time.time() - began),
        "lost": facts["lost"],
        "doubled": facts["doubled"],
        "unfinished": facts["open"],
        "states": facts["states"],
        "said_twice": facts["said_twice"],
        "latest_start": facts["latest"],
        "complaints": len(unhappy),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.schedules.chaos", description=__doc__)
    parser.add_argument("--orders", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=240)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    report = run(options.orders, options.seconds, random.Random(options.seed))
    sys.stdout.write(json.dumps(report) + "\n")
    bad = report["lost"] or report["doubled"] or report["unfinished"] or report["said_twice"]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
