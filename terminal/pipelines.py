"""`manage.py agent pipeline …`: pipelines from a terminal or a script, with this machine's tables.

A run's exit code: 0 it came to a good end, 3 it waits for a person, for money or for a service, 5 it did not
pass or was stopped. What may be done is said by the actions; programs elsewhere use `/api/pipelines`.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from accounts.models import Organisation, User
from conversations.actions.conversations import find_environment
from harness.errors import Invalid
from pipelines.access import find_pipeline, find_run
from pipelines.actions.definitions import save_pipeline
from pipelines.actions.runs import start_run, stop_run
from pipelines.drawing import rule_words
from pipelines.files import read_pipeline, written_pipeline
from pipelines.models import Pipeline, PipelineRun
from pipelines.shipped import example_pipelines
from pipelines.showing import Shown, as_json, show
from reading.arguments import amount, whole_number
from spending.amounts import LARGEST_DOLLARS, units_of
from terminal import comparing
from terminal.givenfiles import text_at
from terminal.local import find_organisation, find_person
from terminal.screen import printable
from terminal.talk import Ending

Options = dict[str, Any]
LOOK_SECONDS = 0.2


def add_commands(parser: ArgumentParser, common: ArgumentParser) -> None:
    """The words behind `agent pipeline`, each with the options that all commands have."""
    commands = parser.add_subparsers(dest="pipeline", required=True, metavar="COMMAND")

    def command(name: str, help_text: str, *arguments: str) -> ArgumentParser:
        made: ArgumentParser = commands.add_parser(name, help=help_text, parents=[common])
        for argument in arguments:
            made.add_argument(argument)
        return made

    command("list", "the pipelines there are")
    command("show", "a pipeline's steps, or how a run stands", "name")
    command("export", "print a pipeline as YAML", "name")
    made = command("import", "save what a file says as a version")
    made.add_argument("file", help=f"YAML, or one of ours: {', '.join(example_pipelines())}")
    made.add_argument("--note", default="", help="what changes")
    dollars = amount(0, float(LARGEST_DOLLARS))
    made = command("run", "put a question to a pipeline and wait for what comes of it", "name")
    made.add_argument("question", help="what to ask; - reads it from standard input")
    made.add_argument("--version", type=whole_number(1, 2**31 - 1), help="else the newest")
    made.add_argument("--environment", default="", help="name or id")
    made.add_argument("--limit", type=dollars, help="US dollars that all of it may cost")
    made.add_argument("--scripted", action="store_true", help="play the steps' scripts")
    comparing.add_options(command("compare", "put one question to several, and say which won"))


def carry_out(options: Options) -> Ending:
    """Raises `Declined` as the actions do."""
    if options["url"]:
        raise Invalid(
            "Pipelines are run from the machine that holds them.",
            field="url",
            hint="Run the command there, or use /api/pipelines.",
        )
    person = find_person(options["user"])
    act: Callable[[User, Organisation, Options], Ending] = {
        "list": _list,
        "show": _show,
        "export": _export,
        "import": _import,
        "run": _run,
        "compare": comparing.compare,
    }[options["pipeline"]]
    return act(person, find_organisation(person, options["organisation"]), options)


def _list(person: User, organisation: Organisation, options: Options) -> Ending:
    rows = Pipeline.objects.visible_to(person).filter(organisation=organisation).on_offer()
    for pipeline in rows:
        number = pipeline.newest().number
        if options["json"]:
            row = {"id": pipeline.uid, "name": pipeline.name, "version": number}
            _print(json.dumps(row, ensure_ascii=False))
        else:
            _print(f"{pipeline.uid}  {pipeline.name}  version {number}  {pipeline.description}")
    return Ending.DONE


def _show(person: User, organisation: Organisation, options: Options) -> Ending:
    runs = PipelineRun.objects.visible_to(person).filter(uid=options["name"])
    if runs.exists():
        return _told(find_run(person, options["name"]), person, options)
    version = find_pipeline(person, organisation, options["name"]).newest()
    pinned = version.pinned()
    for step in version.spec.steps:
        done_by = "asks a person" if step.approval else str(pinned[step.name])
        rules = "; ".join(rule_words(version.spec, step.name))
        _print(f"{step.name}  {done_by}  {rules}")
    return Ending.DONE


def _export(person: User, organisation: Organisation, options: Options) -> Ending:
    version = find_pipeline(person, organisation, options["name"]).newest()
    sys.stdout.write(written_pipeline(version.spec))
    return Ending.DONE


def _import(person: User, organisation: Organisation, options: Options) -> Ending:
    text = example_pipelines().get(options["file"])
    if text is None:
        text = text_at(options["file"])
    version = save_pipeline(
        actor=person, organisation=organisation, spec=read_pipeline(text), note=options["note"]
    )
    _print(f"{version.pipeline.uid}  {version.pipeline.name}  version {version.number}")
    return Ending.DONE


def _run(person: User, organisation: Organisation, options: Options) -> Ending:
    question = sys.stdin.read() if options["question"] == "-" else options["question"]
    environment = None
    if options["environment"]:
        environment = find_environment(
            actor=person, organisation=organisation, wanted=options["environment"]
        )
    limit = options["limit"]
    run = start_run(
        actor=person,
        pipeline=find_pipeline(person, organisation, options["name"]),
        question=question,
        number=options["version"],
        environment=environment,
        limit=None if limit is None else units_of(Decimal(str(limit))),
        scripted=options["scripted"],
    )
    told: dict[int, str] = {}
    try:
        while True:
            run = find_run(person, run.uid)
            shown = show(run, person)
            if not options["json"]:
                _progress(shown, told)
            if shown.state != PipelineRun.State.RUNNING:
                break
            time.sleep(LOOK_SECONDS)
    except KeyboardInterrupt:
        stop_run(actor=person, run=run)
        return Ending.STOPPED
    return _told(run, person, options)


def _progress(shown: Shown, told: dict[int, str]) -> None:
    """A line for each step whose state is another one than was told."""
    for step in shown.steps:
        if told.get(step.row.place) != step.state:
            told[step.row.place] = step.state
            why = step.row.problem or step.waits_for
            _print(f"{step.row.place}. {step.row.name}  {step.state}  {why}".rstrip(), sys.stderr)


def _told(run: PipelineRun, person: User, options: Options) -> Ending:
    if options["json"]:
        _print(json.dumps(as_json(run, person), ensure_ascii=False))
    shown = show(run, person)
    if not options["json"]:
        for line in shown.answer.split("\n"):
            _print(line)
        figures = shown.figures
        _print(
            f"{run.uid}  {shown.state}  {figures.steps} steps, {figures.model_calls} model calls, "
            f"{figures.tokens} tokens, {figures.cost_text}  {run.problem}".rstrip()
        )
    endings = {"done": Ending.DONE, "running": Ending.DONE, "waits": Ending.WAITS}
    return endings.get(shown.state, Ending.FAILED)


def _print(line: str, to: Any = None) -> None:
    (to or sys.stdout).write(f"{printable(line)}\n")
