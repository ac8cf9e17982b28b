"""B1–B6: how many conversations stream at once, what a delta costs, how soon the first one comes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

from bench import machine
from bench.budgets import NotMeasured, Reading
from bench.figures import quantile
from bench.plan import Load
from bench.sites import Site, one_process, scaled
from bench.stage import Stage

FIRST_MS = 1_000.0
"""A capacity counts only while the first delta comes within this, for 99 % of the sessions."""
SHARE_KEEPING_UP = 0.99
STEP = 1.25
CORES_FOR_MANY = 6
"""Two web processes, two workers, the services between them, and the load."""

Drive = Callable[[Load], dict[str, Any]]


def _load(stage: Stage, sessions: int) -> Load:
    return Load(sessions, starts=40.0 if stage.quick else 20.0, overlap=2.5 if stage.quick else 5.0)


def drive_sdk(stage: Stage) -> Drive:
    def drive(load: Load) -> dict[str, Any]:
        stage.reset_service()
        return stage.sdk.ask(what="load", service=stage.service, load=asdict(load))

    return drive


def drive_site(stage: Stage, site: Site) -> Drive:
    def drive(load: Load) -> dict[str, Any]:
        conversations = site.conversations(load.sessions)
        stage.reset_service()
        return stage.browsers.ask(
            what="load",
            port=site.port,
            load=asdict(load),
            watched=site.pids,
            conversations=conversations,
        )

    return drive


def drive_beginners(stage: Stage, site: Site) -> Drive:
    """Each session is a conversation that a program begins at `/api`."""

    def drive(load: Load) -> dict[str, Any]:
        stage.reset_service()
        return stage.beginners.ask(
            what="load",
            door="api",
            port=site.port,
            given=site.beginner,
            load=asdict(load),
            watched=site.pids,
        )

    return drive


def _doubt(stage: Stage, *results: dict[str, Any]) -> str:
    lost = [one for one in results if one["whole"] < one["count"]]
    if lost:
        return f"{lost[0]['count'] - lost[0]['whole']} sessions failed: {lost[0]['failures']}"
    return stage.doubt(max(one["client_cores"] for one in results))


# --- B1, B5, B6 -----------------------------------------------------------------------------------


def capacity(stage: Stage, drive: Drive) -> int:
    """The most sessions that keep up, in steps of 25 %, best of two tries a step; 0: not even four."""

    def keeps_up(sessions: int) -> bool:
        for _ in range(1 if stage.quick else 2):
            seen = drive(_load(stage, sessions))
            if seen["keep_up"] >= SHARE_KEEPING_UP and seen["first_p99_ms"] <= FIRST_MS:
                return True
        return False

    probe = drive(_load(stage, 16))
    by_cost = 1e6 / max(1.0, float(probe["microseconds_per_delta"])) / 50
    sessions = max(4, round(by_cost * 0.6))
    if keeps_up(sessions):
        while keeps_up(more := max(sessions + 1, round(sessions * STEP))):
            sessions = more
        return sessions
    while sessions > 4:
        sessions = max(4, round(sessions / STEP))
        if keeps_up(sessions):
            return sessions
    return 0


def sessions_at_once(stage: Stage) -> Iterator[Reading]:
    drive = drive_site(stage, stage.site)
    reference = capacity(stage, drive_sdk(stage))
    own = capacity(stage, drive)
    if not reference or not own:
        raise NotMeasured(
            f"neither load may be lower: the SDK kept up with {reference}, the product with {own}"
        )
    yield Reading("B1", own / reference, own, reference)
    begun = capacity(stage, drive_beginners(stage, stage.site))
    yield Reading("B1 begun", begun / reference, begun, reference)
    busy = drive(_load(stage, max(1, round(own * 0.8))))
    yield Reading("B5", busy["first_p99_ms"], doubt=_doubt(stage, busy))
    half = drive(_load(stage, max(1, own // 2)))
    yield Reading("B6", half["late_p99_ms"], doubt=_doubt(stage, half))


# --- B2, B3 ---------------------------------------------------------------------------------------


def cost_of_a_delta(stage: Stage) -> Iterator[Reading]:
    yield _cost(stage, "B2", stage.site)


def cost_with_redis(stage: Stage) -> Iterator[Reading]:
    yield _cost(stage, "B3", stage.split_site)


def _cost(stage: Stage, name: str, site: Site) -> Reading:
    load = _load(stage, 100)
    reference = drive_sdk(stage)(load)
    doubt = _doubt(stage, reference)
    own = drive_site(stage, site)(load)
    doubt = doubt or _doubt(stage, own)
    costs = own["microseconds_per_delta"], reference["microseconds_per_delta"]
    return Reading(name, costs[0] / costs[1], *costs, doubt=doubt)


# --- B4 -------------------------------------------------------------------------------------------


BETWEEN_TURNS = 0.06
"""Seconds. Our turns have as much between them, until the page rests and the next one is open; who asks
without a pause finds its caches warm, and is not idle."""


def first_delta(stage: Stage) -> Iterator[Reading]:
    times = 30 if stage.quick else 120
    site = stage.site
    stage.reset_service()
    ask = stage.browsers.ask
    ask(what="first", port=site.port, conversations=site.conversations(5))
    own: list[float] = []
    reference: list[float] = []
    for _ in range(3):
        reference += stage.sdk.ask(
            what="first", service=stage.service, times=times // 3, pause=BETWEEN_TURNS
        )["ms"]
        fresh = site.conversations(times // 3)
        own += ask(what="first", port=site.port, conversations=fresh)["ms"]
    for part, share in (("p50", 0.5), ("p99", 0.99)):
        values = quantile(own, share), quantile(reference, share)
        yield Reading(f"B4 {part}", values[0] - values[1], *values, doubt=stage.doubt())


# --- B15 ------------------------------------------------------------------------------------------


def many_processes(stage: Stage) -> Iterator[Reading]:
    if len(machine.cores()) < CORES_FOR_MANY:
        raise NotMeasured(f"needs {CORES_FOR_MANY} cores, this machine has {len(machine.cores())}")
    anywhere = machine.cores()
    with one_process(stage.directory("alone"), stage.service, pinned=anywhere) as site:
        alone = capacity(stage, drive_site(stage, site))
    with scaled(stage.directory("many"), stage.service, web=2, workers=2, pinned=anywhere) as site:
        many = capacity(stage, drive_site(stage, site))
    yield Reading("B15", many / max(1, alone), many, alone)
