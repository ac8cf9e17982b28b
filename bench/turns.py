"""B16, and B1 with starts: what it costs to begin a conversation, ask, and read a short answer.

Counted is the processor time of everything that serves, from the first request to what a run writes
behind its answer, against raw SDK calls of the same answer in the same rhythm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from statistics import mean
from typing import Any

from bench.budgets import Reading
from bench.plan import Turns
from bench.stage import Stage

DOORS = {"api": "at /api", "page": "at a page"}
WARM = Turns(sessions=10)
"""What imports and caches come with is not what a turn costs."""
PARTS = 3
"""Reference and doors take turns, so that who else uses the machine disturbs all of them."""


def short_turn(stage: Stage) -> Iterator[Reading]:
    turns = Turns(sessions=10 if stage.quick else 60)
    for door in DOORS:
        stage.kept(f"warm {door}", partial(_product, stage, door, WARM))
    reference: list[dict[str, Any]] = []
    own: dict[str, list[dict[str, Any]]] = {door: [] for door in DOORS}
    for _ in range(PARTS):
        stage.reset_service()
        asked = asdict(turns)
        reference.append(stage.sdk.ask(what="turns", service=stage.service, turns=asked))
        for door in DOORS:
            own[door].append(_product(stage, door, turns))
    sdk = mean(one["ms"] for one in reference)
    for door, part in DOORS.items():
        cost = mean(one["ms"] for one in own[door])
        failures = [text for one in (*reference, *own[door]) for text in one["failures"]]
        yield Reading(f"B16 {part}", cost / sdk, cost, sdk, doubt="; ".join(failures[:1]))


def _product(stage: Stage, door: str, turns: Turns) -> dict[str, Any]:
    site = stage.site
    return stage.beginners.ask(
        what="turns",
        door=door,
        port=site.port,
        given=site.beginner,
        watched=site.pids,
        turns=asdict(turns),
    )
