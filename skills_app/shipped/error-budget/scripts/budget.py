#!/usr/bin/env python3
"""The error budget of a service level objective, as JSON. Counts are events; shares are of 1."""

from __future__ import annotations

import argparse
import json
import math
import sys


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objective", type=float, required=True, help="per cent, such as 99.9")
    parser.add_argument("--window-days", type=float, required=True)
    parser.add_argument("--elapsed-days", type=float, required=True, help="since the window began")
    parser.add_argument("--total", type=int, required=True, help="events so far")
    parser.add_argument("--bad", type=int, required=True, help="of them, those that failed")
    given = parser.parse_args()
    wrong = fault_of(given)
    if wrong:
        sys.stderr.write(f"{wrong}\n")
        return 2
    sys.stdout.write(json.dumps(budget(given), indent=2) + "\n")
    return 0


def fault_of(given: argparse.Namespace) -> str:
    if not all(map(math.isfinite, (given.objective, given.window_days, given.elapsed_days))):
        return "All values must be finite numbers."
    if not 0 < given.objective < 100:
        return "The objective lies between 0 and 100 per cent, without both."
    if not 0 < given.elapsed_days <= given.window_days:
        return "The days that passed are more than 0 and at most those of the window."
    if not 0 <= given.bad <= given.total or given.total == 0:
        return "There is at least one event, and no more bad ones than all."
    return ""


def budget(given: argparse.Namespace) -> dict[str, float | None]:
    share = 1 - given.objective / 100
    expected = given.total / given.elapsed_days * given.window_days
    allowed = expected * share
    left = allowed - given.bad
    a_day = given.bad / given.elapsed_days
    return {
        "allowed": round(allowed, 1),
        "used_share": round(given.bad / allowed, 4),
        "burn_rate": round(given.bad / given.total / share, 4),
        "days_left": None if a_day == 0 else round(max(0.0, left / a_day), 1),
    }


def as_tool(**given: float) -> dict[str, float | None]:
    values = argparse.Namespace(**given)
    wrong = fault_of(values)
    if wrong:
        raise ValueError(wrong)
    return budget(values)


if __name__ == "__main__":
    raise SystemExit(main())
