"""`manage.py agent pipeline compare …`: one question to several pipelines and agents, as a table.

Its exit code: 0 somebody won or all are even, 3 it waits for a person, for money or for a service, 5 nobody
came to an answer that passed, or it was stopped.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from decimal import Decimal
from typing import Any

from accounts.models import Organisation, User
from comparisons.access import find_comparison
from comparisons.actions.comparisons import start_comparison, stop_comparison
from comparisons.models import SCALE, Comparison
from comparisons.showing import Shown, as_json, show
from conversations.actions.conversations import find_agent, find_environment
from pipelines.access import find_pipeline
from reading.arguments import amount
from spending.amounts import LARGEST_DOLLARS, units_of
from terminal.screen import printable
from terminal.talk import Ending

Options = dict[str, Any]
LOOK_SECONDS = 0.2
COLUMNS = ("", "state", "quality", "steps", "calls", "tokens", "cost", "seconds")


def add_options(command: ArgumentParser) -> None:
    command.add_argument("question", help="what to ask; - reads it from standard input")
    command.add_argument("names", nargs="*", metavar="PIPELINE", help="name or id")
    command.add_argument("--agent", action="append", default=[], help="an agent alone; repeatable")
    command.add_argument("--environment", default="", help="name or id")
    dollars = amount(0, float(LARGEST_DOLLARS))
    command.add_argument("--limit", type=dollars, help="US dollars that all of it may cost")
    command.add_argument("--scripted", action="store_true", help="pipelines play their scripts")
    command.add_argument("--no-judge", action="store_true", help="do not have answers judged")
    command.add_argument("--judge-provider", default="", help="else the first there is a key for")
    command.add_argument("--judge-model", default="")


def compare(person: User, organisation: Organisation, options: Options) -> Ending:
    question = sys.stdin.read() if options["question"] == "-" else options["question"]
    environment, limit = None, options["limit"]
    if options["environment"]:
        environment = find_environment(
            actor=person, organisation=organisation, wanted=options["environment"]
        )
    comparison = start_comparison(
        actor=person,
        organisation=organisation,
        question=question,
        pipelines=[find_pipeline(person, organisation, each) for each in options["names"]],
        agents=[
            find_agent(actor=person, organisation=organisation, wanted=each)
            for each in options["agent"]
        ],
        environment=environment,
        limit=None if limit is None else units_of(Decimal(str(limit))),
        scripted=options["scripted"],
        judged=not options["no_judge"],
        judge_provider=options["judge_provider"],
        judge_model=options["judge_model"],
    )
    try:
        shown = show(comparison, person)
        while shown.state == Comparison.State.RUNNING:
            time.sleep(LOOK_SECONDS)
            shown = show(find_comparison(person, comparison.uid), person)
    except KeyboardInterrupt:
        stop_comparison(actor=person, comparison=comparison)
        return Ending.STOPPED
    if options["json"]:
        _print(json.dumps(as_json(shown.comparison, person), ensure_ascii=False))
    else:
        _tell(shown)
    if shown.state == "waits":
        return Ending.WAITS
    return Ending.DONE if shown.won.by else Ending.FAILED


def _tell(shown: Shown) -> None:
    lines = [COLUMNS]
    for entry in shown.entries:
        points, figures = entry.row.points, entry.figures
        lines.append(
            (
                entry.row.name,
                entry.state,
                "-" if points is None else f"{points:g}/{SCALE}",
                str(figures.steps),
                str(figures.model_calls),
                str(figures.tokens),
                figures.cost_text,
                f"{figures.seconds:g}",
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(COLUMNS))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        _print("  ".join(cells).rstrip())
    for entry in shown.entries:
        if why := entry.row.problem or entry.waits_for:
            _print(f"{entry.row.name}: {why}")
    _print(f"{shown.comparison.uid}  {shown.won_words or shown.words}")


def _print(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")
