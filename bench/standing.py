"""B18: what thousands of schedules cost while none is due, and how soon a thousand begin that are due at
once, with people who chat meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict

from bench import machine
from bench.budgets import Reading
from bench.machine import family_seconds
from bench.plan import Load
from bench.sites import Site, one_process
from bench.stage import Stage

MANY = 10_000
DUE = 1_000
MINUTE = 60.0
CHATTING = 20
"""Conversations that stream while the thousand begin."""
AHEAD = 8.0
"""Seconds from making what is due to its time."""


def many_schedules(stage: Stage) -> Iterator[Reading]:
    site = stage.kept("schedules", lambda: _site(stage))
    yield _idle(stage, site)
    yield from _due(stage, site)


def _site(stage: Stage) -> Site:
    return stage.stack.enter_context(
        one_process(
            stage.directory("schedules"),
            stage.service,
            pinned=machine.server_cores(),
            AGENTSITE_SCHEDULES="100000",
        )
    )


def _idle(stage: Stage, site: Site) -> Reading:
    """By how much a core is busier with them than without."""
    seconds = 10.0 if stage.quick else 40.0
    site.installation.ask(what="no_orders")
    before = _busy(site, seconds)
    site.installation.ask(what="orders", count=MANY, ahead=30 * 86_400.0)
    after = _busy(site, seconds)
    return Reading("B18 idle", max(0.0, after - before), after, before)


def _busy(site: Site, seconds: float) -> float:
    """Percent of a core."""
    time.sleep(2.0)
    used, began = family_seconds(site.pids), time.monotonic()
    time.sleep(seconds)
    return (family_seconds(site.pids) - used) / (time.monotonic() - began) * 100


def _due(stage: Stage, site: Site) -> Iterator[Reading]:
    """All of them at the same moment, the others still there."""
    count = DUE // 5 if stage.quick else DUE
    length = MINUTE * count / DUE
    stage.reset_service()
    used = family_seconds(site.pids)
    site.installation.ask(what="orders", count=count, ahead=AHEAD)
    load = Load(CHATTING, overlap=AHEAD + length)
    seen = stage.browsers.ask(
        what="load",
        port=site.port,
        load=asdict(load),
        watched=site.pids,
        conversations=site.conversations(CHATTING),
    )
    found = site.installation.ask(what="orders_begun", count=count, patience=5 * MINUTE)
    used = family_seconds(site.pids) - used
    doubt = stage.doubt(seen["client_cores"])
    if found["begun"] < count:
        doubt = f"{count - found['begun']} did not begin"
    elif seen["whole"] < seen["count"]:
        doubt = f"{seen['count'] - seen['whole']} who chat failed: {seen['failures']}"
    scale = DUE / count
    yield Reading("B18 due", found["latest"] * scale, found["latest"], used, doubt=doubt)
    yield Reading("B18 chat", seen["late_p99_ms"], doubt=doubt)
