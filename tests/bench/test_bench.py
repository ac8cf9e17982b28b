"""The bench runs and reports. How fast anything is depends on the machine and is never tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.budgets import BUDGETS, IDS, Reading, wanted
from bench.held import held_bytes
from bench.report import Line, table
from bench.rounds import Rounds

ROOT = Path(__file__).resolve().parents[2]


def test_one_budget_is_measured_and_reported_from_end_to_end(tmp_path: Path):
    outcome = tmp_path / "outcome.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--only", "B8", "--quick", "--json", str(outcome)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1_800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (budget,) = json.loads(outcome.read_text())["budgets"]
    assert budget["budget"] == "B8"
    assert budget["value"] > 0, done.stderr
    assert budget["verdict"] in {"met", "missed"}
    assert "CPU of step 200 / step 5" in done.stdout


def test_every_budget_has_its_number_and_an_aim_at_least_as_strict_as_its_limit():
    named = [
        *(f"B{number}" for number in range(1, 19)),
        "TEAM",
        "RECALL",
        "API",
        "BASH",
        "MCP",
        "SKILLS",
    ]
    assert named == list(IDS)
    for budget in BUDGETS:
        for value in (budget.aim, budget.limit):
            assert value is None or budget.is_met(value), budget.name


def test_a_figure_without_a_budget_is_shown_for_comparison():
    line = Line(wanted(["API"])[0], [Reading("API create", 3.6, 36.0, 10.0)])
    assert line.verdict == "for comparison"
    assert "36 / 10" in table([line])


def test_rounds_are_left_out_once_time_is_short():
    rounds = Rounds(3, seconds=10.0)
    assert rounds.fits(1, "long")
    rounds.took("long", 11.0)
    rounds.took("short", 0.5)
    assert rounds.fits(1, "unknown")
    assert not rounds.fits(2, "long")
    assert rounds.fits(2, "short")


def test_an_unknown_budget_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="B99; there are B1, B2"):
        wanted(["B1", "B99"])


def test_the_median_decides_and_a_doubt_keeps_it_from_counting():
    (budget,) = wanted(["B8"])
    line = Line(budget, [Reading("B8", value) for value in (1.0, 9.0, 1.1)])
    assert (line.value, line.verdict) == (1.1, "met")
    line.readings.append(Reading("B8", 1.0, doubt="the load used 0.95 core"))
    assert line.verdict == "does not count"
    assert "does not count" in table([line])


def test_what_was_not_measured_says_why():
    (budget,) = wanted(["B15"])
    line = Line(budget, why_not="needs 6 cores, this machine has 2")
    assert line.verdict == "not measured"
    assert "needs 6 cores" in table([line])


def test_what_a_process_holds_is_counted_to_the_byte_and_no_more_once_it_let_go():
    before = held_bytes()
    if before is None:
        pytest.skip("the C library does not count what it gave out")
    held = [bytes(100_000) for _ in range(100)]
    while_held = held_bytes()
    held.clear()
    after = held_bytes()
    assert while_held is not None
    assert after is not None
    assert 10_000_000 <= while_held - before < 10_500_000
    assert abs(after - before) < 500_000
