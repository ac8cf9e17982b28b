"""B7, B8, B10: what one step of a turn costs, also with traces, whether later steps cost more, and a large
tool input.

Nobody watches these turns: drawing for an open page is a cost of pages, not of steps.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import Any

from bench import machine
from bench.budgets import Reading
from bench.sites import Site, one_process
from bench.stage import Stage

STEPS = 40
LONG = 205
PATIENCE = 300.0


def step(stage: Stage) -> Iterator[Reading]:
    own = median(costs(stage, f"bench loop {STEPS}", STEPS)[5:35])
    # The middle of that turn, as the product asked it.
    costs(stage, f"bench loop {STEPS // 2}", STEPS // 2)
    text = json.dumps(stage.ask_service("GET", "/last-body"))
    body: dict[str, Any] = json.loads(text.replace(f"bench loop {STEPS // 2}", "bench loop 999"))
    body.pop("stream")
    used = stage.sdk.ask(what="calls", service=stage.service, body=body, times=20)["seconds"]
    reference = median(used)
    yield Reading("B7", own / reference, own * 1000, reference * 1000)


def traced(stage: Stage) -> Iterator[Reading]:
    """A step where a collector is told of each turn, against one where none is."""
    site = stage.kept("traced site", lambda: _traced_site(stage))
    with_it, without = [], []
    for _ in range(2 if stage.quick else 4):
        without += costs(stage, f"bench loop {STEPS}", STEPS)[5:]
        with_it += costs(stage, f"bench loop {STEPS}", STEPS, site=site)[5:]
    own, reference = median(with_it), median(without)
    yield Reading("B7 traced", own / reference, own * 1000, reference * 1000)


def _traced_site(stage: Stage) -> Site:
    """The stand-in refuses what it does not know: what is sent there was made and sent all the same."""
    made = one_process(
        stage.directory("traced"),
        stage.service,
        pinned=machine.server_cores(),
        AGENTSITE_OTLP_ENDPOINT=stage.service,
    )
    return stage.stack.enter_context(made)


def late_steps(stage: Stage) -> Iterator[Reading]:
    steps = 60 if stage.quick else LONG
    used = costs(stage, f"bench loop {steps}", steps)
    early, late = median(used[3:10]), median(used[-9:-1])
    yield Reading("B8", late / early, late * 1000, early * 1000)


def large_input(stage: Stage) -> Iterator[Reading]:
    size = 200_000 if stage.quick else 1_000_000
    (own,), (quarter,) = (
        costs(stage, f"bench input {characters}", 1) for characters in (size, size // 4)
    )
    reference = stage.sdk.ask(what="input", service=stage.service, size=size)["seconds"]
    yield Reading("B10", own / reference, own * 1000, reference * 1000)
    yield Reading("B10 growth", own / (4 * quarter), own * 1000, quarter * 1000)


def costs(
    stage: Stage,
    order: str,
    steps: int,
    *,
    conversations: list[list[str]] | None = None,
    site: Site | None = None,
) -> list[float]:
    """The server's processor seconds from one request's arrival to the next, for each of `steps`; in the
    first of `conversations`, or a plain one."""
    site = site or stage.site
    stage.reset_service(*site.pids)
    stage.browsers.ask(
        what="post",
        port=site.port,
        order=order,
        conversations=conversations or site.conversations(1),
    )
    deadline = time.monotonic() + PATIENCE
    while len(arrivals := stage.ask_service("GET", "/stats")["arrivals"]) <= steps:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the turn made {len(arrivals)} of {steps + 1} requests")
        time.sleep(0.2)
    time.sleep(0.3)
    used = [used for _at, used in arrivals]
    return [after - before for before, after in pairwise(used)]
