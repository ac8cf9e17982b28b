"""TEAM: what a teammate costs that has nothing to do, and what it takes to start children, one and many.

On a server of its own, which lets many work at once and looks after its teams each second instead of twice a
minute, so that what is done for those who rest is seen at all.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Iterator
from statistics import median
from typing import Any

from bench import machine
from bench.budgets import NotMeasured, Reading
from bench.held import PLAIN
from bench.sites import PATIENCE, Site, one_process
from bench.stage import Stage

OF_ONE = 10
"""Teammates of one team: each team's lead hears of every rest."""
WINDOW = 20.0
AT_ONCE, DELTAS, PER_SECOND = 50, 300, 50
SETTINGS = {
    "AGENTSITE_TEAMMATES": str(OF_ONE),
    "AGENTSITE_TEAM_SECONDS": "1",
    "AGENTSITE_SUBAGENTS_AT_ONCE": str(AT_ONCE),
    "AGENTSITE_SUBAGENTS_IN_ALL": "100000",
}


def idle_teammate(stage: Stage) -> Iterator[Reading]:
    """Each has worked once, and rests. Some do before: what imports come with, and the statements that each
    connection keeps, is not what a teammate costs."""
    site = stage.kept("idle site", lambda: _site(stage, "idle", **PLAIN))
    warm, teams = (16, 8) if stage.quick else (20, 24)
    _gather(site, warm)
    held, used = _held(site), _used(site)
    _gather(site, teams)
    more = _held(site) - held
    cost = _used(site) - used
    count = teams * OF_ONE
    yield Reading("TEAM idle", max(0.0, cost) / count * 60 / WINDOW * 1000)
    yield Reading("TEAM memory", max(0.0, more / count / 1024))


def children(stage: Stage) -> Iterator[Reading]:
    site = stage.kept("team site", lambda: _site(stage, "children"))
    first: list[float] = []
    starts: list[float] = []
    for _ in range(6 if stage.quick else 16):
        stage.reset_service(*site.pids)
        asked = _ask(stage, site, "bench children 1 1 0")
        arrivals = stage.ask_service("GET", "/stats")["arrivals"]
        at_parent, at_child = (used for _at, used in arrivals[:2])
        first.append(at_parent - asked["before"])
        starts.append(at_child - at_parent)
    # The first ones import and fill caches.
    own, reference = median(starts[3:]), median(first[3:])
    yield Reading("TEAM start", own / reference, own * 1000, reference * 1000)
    stage.reset_service()
    seen = _ask(stage, site, f"bench children {AT_ONCE} {DELTAS} {PER_SECOND}")
    doubt = stage.doubt()
    if seen["children"] != AT_ONCE or not seen["deltas"]:
        doubt = f"{seen['children']} of {AT_ONCE} children, {seen['deltas']} deltas"
    yield Reading("TEAM children", seen["late_p99_ms"], doubt=doubt)


def _site(stage: Stage, name: str, **more: str) -> Site:
    made = one_process(
        stage.directory(name),
        stage.service,
        pinned=machine.server_cores(),
        **SETTINGS,
        **more,
    )
    return stage.stack.enter_context(made)


def _ask(stage: Stage, site: Site, order: str) -> dict[str, Any]:
    return stage.beginners.ask(
        what="children",
        door="api",
        port=site.port,
        given=site.beginner,
        watched=site.pids,
        order=order,
    )


def _gather(site: Site, teams: int) -> None:
    """Bring so many teams together, and wait until all of them rest."""
    for _ in range(teams):
        wanted = {"preset": site.beginner["agent"], "enable_teams": True}
        uid = _send(site, "POST", "/api/chat", wanted)["conversation_id"]
        path = f"/api/conversations/{uid}/team"
        for number in range(OF_ONE):
            made = {"name": f"mate{number}", "prompt": "bench stream 1 0"}
            _send(site, "POST", path, made)
        deadline = time.monotonic() + PATIENCE
        while any(row["status"] != "idle" for row in _send(site, "GET", path)):
            if time.monotonic() > deadline:
                raise TimeoutError("a team did not come to rest")
            time.sleep(0.1)
    time.sleep(3.0)


def _held(site: Site) -> int:
    found: int | None = _send(site, "GET", "/bench/held")["bytes"]
    if found is None:
        raise NotMeasured("the C library does not count what it gave out")
    return found


def _used(site: Site) -> float:
    """Processor seconds of a while in which nothing happens."""
    before = machine.family_seconds(site.pids)
    time.sleep(WINDOW)
    return machine.family_seconds(site.pids) - before


def _send(site: Site, method: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{site.port}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {site.beginner['secret']}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=PATIENCE) as response:  # noqa: S310
        return json.loads(response.read())
