#!/usr/bin/env python3
"""How many instances a load needs, now and later, as JSON."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import Any

MOST_MONTHS = 240


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peak-rate", type=float, required=True, help="requests a second")
    parser.add_argument("--seconds", type=float, required=True, help="that one takes")
    parser.add_argument("--slots", type=int, required=True, help="requests at once, of an instance")
    parser.add_argument("--free", type=float, default=0.35, help="share that stays free")
    parser.add_argument("--growth", type=float, default=0.0, help="per cent a month")
    parser.add_argument("--months", type=int, default=12)
    parser.add_argument("--instances", type=int, required=True, help="that there are now")
    given = parser.parse_args()
    wrong = fault_of(given)
    if wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    sys.stdout.write(json.dumps(plan(given), indent=2) + "\n")
    return 0


def fault_of(given: argparse.Namespace) -> str:
    if not all(map(math.isfinite, (given.peak_rate, given.seconds, given.free, given.growth))):
        return "All values must be finite numbers."
    if min(given.peak_rate, given.seconds) <= 0 or given.slots < 1 or given.instances < 1:
        return "Rate, seconds, slots and instances are more than 0."
    if not 0 <= given.free < 1:
        return "The share that stays free is at least 0 and less than 1."
    if not -50 <= given.growth <= 100 or not 0 <= given.months <= MOST_MONTHS:
        return (
            f"Growth lies between -50 and 100 per cent a month, over at most {MOST_MONTHS} months."
        )
    return ""


def needed(given: argparse.Namespace, month: int) -> int:
    at_work = given.peak_rate * (1 + given.growth / 100) ** month * given.seconds
    instances: int = math.ceil(at_work / (given.slots * (1 - given.free)))
    return instances + 1


def plan(given: argparse.Namespace) -> dict[str, int | float | None]:
    months = range(given.months + 1)
    short = next((month for month in months if needed(given, month) > given.instances), None)
    return {
        "at_work_now": round(given.peak_rate * given.seconds, 1),
        "needed_now": needed(given, 0),
        "needed_at_the_end": needed(given, given.months),
        "too_few_from_month": short,
    }


def as_tool(
    level: dict[str, float] | None = None,
    free: float = 0.35,
    growth: float = 0.0,
    months: int = 12,
    **given: float,
) -> dict[str, Any]:
    values = argparse.Namespace(free=free, growth=growth, months=months, **given)
    wrong = fault_of(values)
    if wrong:
        raise ValueError(wrong)
    if level is None:
        return plan(values)
    # There only where the server runs it as a tool.
    from agentsite_skill import (  # type: ignore[import-not-found]  # noqa: PLC0415
        call_skill,
    )

    return {**plan(values), "error_budget": call_skill("error-budget", "budget", **level)}


if __name__ == "__main__":
    raise SystemExit(main())
