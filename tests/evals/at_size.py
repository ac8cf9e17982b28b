"""How long an evaluation of many trials takes beside what these take, and whether a second one asks a model.

    python -m tests.evals.at_size [--cases 500] [--tries 3] [--parallel 8]

Prints the figures and ends with 1 where they miss the bounds. No test runs it: what it says of parallel work
depends on nothing but the engine, how long it takes on the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

if TYPE_CHECKING:
    from evals.models import Evaluation

BOUND = 1.2
"""Wall time over the sum of what trials took, divided by how many are under way at once."""
SHOWN_EACH = 60
"""Seconds between two lines that say how far it is."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=8)
    given = parser.parse_args()
    os.environ["DJANGO_SETTINGS_MODULE"] = "agentsite.settings_test"
    django.setup()
    with tempfile.TemporaryDirectory() as folder:
        # All of it needs the apps that are ready only now.
        from tests.killing import databases  # noqa: PLC0415

        databases.of_this_run(Path(folder)).make()
        begin = _prepared(given.cases, given.parallel)
        fits = [_figures(name, begin(given.tries)) for name in ("first", "second")]
    return 0 if all(fits) else 1


def _prepared(cases: int, parallel: int) -> Callable[[int], Evaluation]:
    from django.conf import settings  # noqa: PLC0415

    from accounts.actions.organisations import create_organisation  # noqa: PLC0415
    from accounts.models import User  # noqa: PLC0415
    from agents.models import Agent, AgentVersion, Environment  # noqa: PLC0415
    from evals.actions.evaluations import start_evaluation  # noqa: PLC0415
    from evals.actions.suites import create_suite, save_case  # noqa: PLC0415
    from evals.checks.spec import CaseSpec  # noqa: PLC0415
    from harness.agentconfig import AgentConfig  # noqa: PLC0415

    settings.AGENTSITE_EVAL_PARALLEL = max(parallel, settings.AGENTSITE_EVAL_PARALLEL)
    alice = User.objects.create_user("alice", "alice@example.org")
    acme = create_organisation(actor=alice, name="Acme")
    agent = Agent.objects.create(name="Clerk")
    config = AgentConfig(provider="demo").model_dump(mode="json")
    version = AgentVersion.objects.create(agent=agent, number=1, stored_config=config)
    Agent.objects.filter(pk=agent.pk).update(current=version)
    place = Environment.objects.create(name="Here")
    suite = create_suite(actor=alice, organisation=acme, name="Many")
    for number in range(cases):
        body = {
            "name": f"case-{number}",
            "input": f"What is {number}?",
            "told_date": "2026-01-02",
            "script": {
                "replies": [
                    {"calls": [{"tool": "think", "input": {"thought": f"About {number}."}}]},
                    {"say": f"It is {number}."},
                ]
            },
            "checks": [{"type": "text", "all": [str(number)]}],
        }
        save_case(actor=alice, suite=suite, spec=CaseSpec.model_validate(body))

    def begin(tries: int) -> Evaluation:
        found: Evaluation = start_evaluation(
            actor=alice,
            suite=suite,
            version=version,
            environment=place,
            scripted=True,
            repetitions=tries,
            parallel=parallel,
        )
        begun = shown = time.monotonic()
        while found.state == found.State.RUNNING:
            time.sleep(0.2)
            found.refresh_from_db()
            if time.monotonic() - shown > SHOWN_EACH:
                shown = time.monotonic()
                done: list[Any] = list(
                    found.trials.exclude(ended_at=None).values("started_at", "ended_at")
                )
                sys.stderr.write(
                    f"{len(done)} trials, {shown - begun:.0f} s, work {_work(done):.0f} s\n"
                )
        return found

    return begin


def _work(trials: list[Any]) -> float:
    seconds = [(each["ended_at"] - each["started_at"]).total_seconds() for each in trials]
    return float(sum(seconds))


def _figures(name: str, evaluation: Evaluation) -> bool:
    from spending.models import Usage  # noqa: PLC0415

    trials: list[Any] = list(
        evaluation.trials.values("state", "started_at", "ended_at", "model_calls")
    )
    assert evaluation.ended_at is not None
    begun = min(each["started_at"] for each in trials)
    wall = (evaluation.ended_at - begun).total_seconds()
    work = _work(trials)
    over = wall / (work / evaluation.parallel)
    calls = sum(each["model_calls"] for each in trials)
    passed = sum(each["state"] == "passed" for each in trials)
    sys.stdout.write(
        f"{name}: {len(trials)} trials, {passed} passed, {wall:.1f} s, work {work:.1f} s over "
        f"{evaluation.parallel}: {over:.2f}x; {calls} model calls, "
        f"{Usage.objects.count()} rows of usage in all\n"
    )
    sys.stdout.flush()
    return passed == len(trials) and over <= BOUND and (name == "first" or calls == 0)


if __name__ == "__main__":
    sys.exit(main())
