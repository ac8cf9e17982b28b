"""`python -m bench`: measure the product against its budgets on this machine.

    python -m bench [--quick] [--only B1,B7] [--rounds 3] [--minutes 9] [--json FILE]

Rounds are interleaved: each measures everything once, product and reference side by side, and the
median of the rounds is what counts. Later rounds leave out what would not end in time.
`docs/performance.md` explains the figures.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import (
    appends,
    crews,
    doors,
    machine,
    pages,
    recalling,
    standing,
    steps,
    streaming,
    taught,
    tools_of_others,
    turns,
)
from bench.budgets import Budget, NotMeasured, Reading, wanted
from bench.report import Line, as_json, table
from bench.rounds import Rounds
from bench.stage import Stage

Measure = Callable[[Stage], Iterator[Reading]]

MEASURES: tuple[tuple[tuple[str, ...], Measure], ...] = (
    (("B4",), streaming.first_delta),
    (("B2",), streaming.cost_of_a_delta),
    (("B7",), steps.step),
    (("B7",), steps.traced),
    (("B16",), turns.short_turn),
    (("B8",), steps.late_steps),
    (("B10",), steps.large_input),
    (("B11",), pages.long_log),
    (("B12",), pages.long_list),
    (("B9",), appends.on_sqlite),
    (("B9",), appends.on_postgresql),
    (("B17",), recalling.many_on_sqlite),
    (("B17",), recalling.many_on_postgresql),
    (("B18",), standing.many_schedules),
    (("TEAM",), crews.children),
    (("TEAM",), crews.idle_teammate),
    (("RECALL",), recalling.recall),
    (("API",), doors.api),
    (("BASH",), doors.sandboxes),
    (("MCP",), tools_of_others.clients),
    (("MCP",), tools_of_others.door),
    (("MCP",), tools_of_others.steps),
    (("SKILLS",), taught.steps),
    (("SKILLS",), taught.calls),
    (("B13",), pages.memory),
    (("B14",), pages.start),
    (("B3",), streaming.cost_with_redis),
    (("B1", "B5", "B6"), streaming.sessions_at_once),
    (("B15",), streaming.many_processes),
)


def run(budgets: tuple[Budget, ...], *, quick: bool, rounds: Rounds) -> list[Line]:
    """Every wanted budget's outcome; a measurement that fails is told, not raised."""
    lines = {budget.name: Line(budget) for budget in budgets}
    ids = {budget.id for budget in budgets}
    with Stage(quick=quick) as stage:
        for number in range(1, rounds.count + 1):
            for covers, measure in MEASURES:
                name = measure.__qualname__.replace("_", " ")
                if not ids.intersection(covers) or not rounds.fits(number, name):
                    continue
                _say(f"round {number} of {rounds.count}: {name}")
                began = time.monotonic()
                _take(measure, stage, lines)
                rounds.took(name, time.monotonic() - began)
    return [lines[budget.name] for budget in budgets]


def _take(measure: Measure, stage: Stage, lines: dict[str, Line]) -> None:
    readings: list[Reading] = []
    why = ""
    try:
        readings.extend(measure(stage))
    except NotMeasured as reason:
        why = str(reason)
    except Exception as problem:
        why = f"failed: {type(problem).__name__}: {problem}"
        _say(why)
    for reading in readings:
        if reading.name in lines:
            lines[reading.name].readings.append(reading)
            _say(f"  {reading.name}: {reading.value:.3g} {reading.doubt}")
    if why:
        covered = next(ids for ids, one in MEASURES if one is measure)
        for line in lines.values():
            if line.budget.id in covered and not line.readings:
                line.why_not = why


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--only", default="", help="budgets to measure, such as B1,B7")
    parser.add_argument("--rounds", type=int, default=0, help="default 3; 1 with --quick")
    parser.add_argument("--minutes", type=float, default=9.0, help="for all rounds; default 9")
    parser.add_argument("--json", type=Path, help="also write the outcome to this file")
    options = parser.parse_args()
    try:
        budgets = wanted([part for part in options.only.split(",") if part])
    except ValueError as problem:
        parser.error(str(problem))
    count = options.rounds or (1 if options.quick else 3)
    lines = run(budgets, quick=options.quick, rounds=Rounds(count, seconds=options.minutes * 60))
    about = machine.description()
    sys.stdout.write(", ".join(f"{name} {value}" for name, value in about.items()) + "\n\n")
    sys.stdout.write(table(lines) + "\n")
    if options.json:
        text = as_json(lines, about, quick=options.quick, rounds=count)
        options.json.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
