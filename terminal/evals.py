"""`manage.py agent eval …`: suites from a terminal or a script of CI, with this machine's tables.

Its exit codes say what came of it: 0 all is well, 1 something does worse or was refused, 5 something could
not be tried. What may be done is said by the actions; programs elsewhere use `/api/evals`.
"""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from accounts.models import Organisation, User
from agents.actions.agents import CHANGE, require_editor
from agents.models import Agent, AgentVersion
from conversations.actions.conversations import find_agent, find_environment
from conversations.defaults import default_environment
from evals.actions.canaries import MOST_SHARE, promote_canary, roll_back_canary, set_canary
from evals.actions.evaluations import start_evaluation, stop_evaluation
from evals.actions.releases import release_version, roll_back
from evals.actions.suites import import_suite, spec_of
from evals.canaries import as_json as canary_as_json
from evals.canaries import canary_of, figures
from evals.exporting import as_json, as_junit
from evals.files import read_suite, written_suite
from evals.gate import words_on
from evals.models import Evaluation, Suite
from evals.reports import compare, summary
from evals.shipped import example_suites
from harness.errors import Invalid, NotFound
from reading.arguments import amount, whole_number
from spending.amounts import LARGEST_DOLLARS, money, units_of
from terminal.givenfiles import text_at
from terminal.local import find_organisation, find_person
from terminal.screen import printable
from terminal.talk import Ending

LOOK_SECONDS = 0.2

Options = dict[str, Any]


def add_commands(parser: ArgumentParser, common: ArgumentParser) -> None:
    """The words behind `agent eval`, each with the options that all commands have."""
    commands = parser.add_subparsers(dest="eval", required=True, metavar="COMMAND")

    def command(name: str, help_text: str) -> ArgumentParser:
        made: ArgumentParser = commands.add_parser(name, help=help_text, parents=[common])
        return made

    made = command("import", "make a suite what a file says")
    made.add_argument("file", help=f"YAML, or one of ours: {', '.join(example_suites())}")
    made = command("export", "print a suite as YAML")
    made.add_argument("suite", help="its name or id")
    made = command("run", "try a suite and wait for what comes of it")
    made.add_argument("suite", help="its name or id")
    made.add_argument("--agent", required=True, help="name or id")
    made.add_argument("--version", type=whole_number(1, 2**31 - 1), help="else the newest")
    made.add_argument("--environment", default="", help="name or id")
    made.add_argument("--provider", default="", help="in place of the version's own")
    made.add_argument("--model", default="", help="in place of the version's own")
    made.add_argument("--skill", action="append", default=[], metavar="NAME=VERSION")
    made.add_argument(
        "--prompt", dest="prompts", action="append", default=[], metavar="NAME=VERSION"
    )
    made.add_argument("--scripted", action="store_true", help="play the cases' scripts")
    made.add_argument("--repetitions", type=whole_number(1, 100), default=1)
    made.add_argument("--parallel", type=whole_number(1, 1_000))
    dollars = amount(0, float(LARGEST_DOLLARS))
    made.add_argument("--limit", type=dollars, help="US dollars that all of it may cost")
    made.add_argument("--no-cache", action="store_true", help="ask anew")
    made.add_argument("--note", default="")
    made.add_argument("--junit", type=Path, help="a file for JUnit's XML")
    made = command("compare", "what does worse in a later evaluation than in an earlier one")
    made.add_argument("before", help="an evaluation's id")
    made.add_argument("after", help="an evaluation's id")
    made = command("gate", "whether a version of an agent may come into use")
    made.add_argument("agent", help="name or id")
    made.add_argument("--version", type=whole_number(1, 2**31 - 1), help="else the newest")
    made.add_argument("--release", action="store_true", help="have it come into use")
    made.add_argument("--reason", default="", help="why it is let pass although it is not green")
    made.add_argument("--roll-back", action="store_true", help="bring back the one before")
    made = command("canary", "what came of the version that a share of conversations begins with")
    made.add_argument("agent", help="name or id")
    made.add_argument("--share", type=whole_number(1, MOST_SHARE), help="percent, to begin one")
    made.add_argument("--version", type=whole_number(1, 2**31 - 1), help="else the newest")
    made.add_argument("--reason", default="", help="why it is let pass although it is not green")
    made.add_argument("--promote", action="store_true", help="have all begin with it")
    made.add_argument("--roll-back", action="store_true", help="have none begin with it any more")


def carry_out(options: Options) -> Ending:
    """Raises `Declined` as the actions do."""
    if options["url"]:
        raise Invalid(
            "Suites are tried from the machine that holds them.",
            field="url",
            hint="Run the command there.",
        )
    person = find_person(options["user"])
    act: Callable[[User, Organisation, Options], Ending] = {
        "import": _import,
        "export": _export,
        "run": _run,
        "compare": _compare,
        "gate": _gate,
        "canary": _canary,
    }[options["eval"]]
    return act(person, find_organisation(person, options["organisation"]), options)


def _import(person: User, organisation: Organisation, options: Options) -> Ending:
    text = example_suites().get(options["file"])
    if text is None:
        text = text_at(options["file"])
    suite = import_suite(actor=person, organisation=organisation, spec=read_suite(text))
    _print(f"{suite.uid}  {suite.name}  {suite.cases.count()} cases")
    return Ending.DONE


def _export(person: User, organisation: Organisation, options: Options) -> Ending:
    sys.stdout.write(written_suite(spec_of(_suite(person, organisation, options["suite"]))))
    return Ending.DONE


def _run(person: User, organisation: Organisation, options: Options) -> Ending:
    suite = _suite(person, organisation, options["suite"])
    version = _version(person, organisation, options)
    wanted = options["environment"]
    environment = (
        find_environment(actor=person, organisation=organisation, wanted=wanted)
        if wanted
        else default_environment(person, organisation)
    )
    limit = options["limit"]
    evaluation = start_evaluation(
        actor=person,
        suite=suite,
        version=version,
        environment=environment,
        provider=options["provider"],
        model=options["model"],
        skills=dict(each.partition("=")[::2] for each in options["skill"]),
        prompts=dict(each.partition("=")[::2] for each in options["prompts"]),
        scripted=options["scripted"],
        repetitions=options["repetitions"],
        parallel=options["parallel"],
        limit=None if limit is None else units_of(Decimal(str(limit))),
        uses_cache=not options["no_cache"],
        note=options["note"],
    )
    try:
        while evaluation.state == Evaluation.State.RUNNING:
            time.sleep(LOOK_SECONDS)
            evaluation.refresh_from_db(fields=["state"])
    except KeyboardInterrupt:
        stop_evaluation(actor=person, evaluation=evaluation)
        return Ending.STOPPED
    if options["junit"]:
        try:
            options["junit"].write_text(as_junit(evaluation), encoding="utf-8")
        except OSError as problem:
            raise Invalid(f"{options['junit']}: {problem.strerror}", field="junit") from None
    told = summary(evaluation)
    if options["json"]:
        _print(json.dumps(as_json(evaluation), ensure_ascii=False))
    else:
        for trial in evaluation.trials.exclude(state="passed").order_by("id"):
            why = [
                f"{each['name']}: {each['why']}" for each in trial.outcomes if not each["passed"]
            ]
            _print(f"{trial.state}  {trial}  {'; '.join(why) or trial.problem}")
        _print(
            f"{evaluation.uid}  {told.passed}/{told.trials} passed, {told.broken} not tried, "
            f"{told.model_calls} model calls, {told.cached_calls} from the cache"
        )
    if told.broken or told.open:
        return Ending.FAILED
    return Ending.REFUSED if told.failed else Ending.DONE


def _compare(person: User, _organisation: Organisation, options: Options) -> Ending:
    before, after = (_evaluation(person, options[name]) for name in ("before", "after"))
    pairs = compare(before, after, answers=False)
    worse = [pair for pair in pairs if pair.change in {"regressed", "not_tried"}]
    if options["json"]:
        rows = [{"case": pair.name, "change": pair.change} for pair in pairs]
        _print(json.dumps(rows, ensure_ascii=False))
        return Ending.REFUSED if worse else Ending.DONE
    for pair in pairs:
        if pair.change != "same":
            why = f"  {pair.after.why[0]}" if pair.after and pair.after.why else ""
            _print(f"{pair.change}  {pair.name}{why}")
    _print(f"{len(worse)} of {len(pairs)} cases do worse")
    return Ending.REFUSED if worse else Ending.DONE


def _gate(person: User, organisation: Organisation, options: Options) -> Ending:
    agent = _agent(person, organisation, options["agent"])
    if options["roll_back"]:
        release = roll_back(actor=person, agent=agent)
        _print(f"version {release.version.number} of {agent.name} is in use again")
        return Ending.DONE
    version = _version(person, organisation, options)
    words = words_on(version)
    if options["release"]:
        release_version(actor=person, agent=agent, version=version, reason=options["reason"])
    if options["json"]:
        _print(json.dumps([word.stored() for word in words], ensure_ascii=False))
    else:
        for word in words:
            _print(f"{'green' if word.green else 'blocked'}  {word.suite}  {word.why}".rstrip())
            for each in word.regressions:
                _print(f"  worse: {each}")
        if options["release"]:
            _print(f"version {version.number} of {agent.name} is in use")
    green = options["release"] or all(word.green for word in words)
    return Ending.DONE if green else Ending.REFUSED


def _canary(person: User, organisation: Organisation, options: Options) -> Ending:
    agent = _agent(person, organisation, options["agent"])
    require_editor(person, agent, CHANGE)
    if options["roll_back"]:
        roll_back_canary(actor=person, agent=agent)
        _print(f"no new conversation of {agent.name} begins with a canary")
        return Ending.DONE
    if options["promote"]:
        release = promote_canary(
            actor=person, agent=agent, number=options["version"], reason=options["reason"]
        )
        _print(f"version {release.version.number} of {agent.name} is in use")
        return Ending.DONE
    if options["share"] is not None:
        set_canary(
            actor=person,
            agent=agent,
            version=_version(person, organisation, options),
            share=options["share"],
            reason=options["reason"],
        )
    canary = canary_of(agent.pk)
    if canary is None:
        raise NotFound(f"{agent.name} has no canary.", hint="Begin one with --share.")
    if options["json"]:
        _print(json.dumps(canary_as_json(canary), ensure_ascii=False))
        return Ending.DONE
    _print(f"version {canary.version.number}: {canary.share}% of new conversations")
    for each in figures(canary):
        _print(
            f"version {each.version}: {each.conversations} conversations, {each.failed} failed, "
            f"{money(each.cost)}, {each.good} good and {each.bad} bad answers"
        )
    return Ending.DONE


def _suite(person: User, organisation: Organisation, wanted: str) -> Suite:
    seen = Suite.objects.visible_to(person).filter(organisation=organisation)
    seen = seen.select_related("organisation")
    found = seen.filter(uid=wanted).first() or seen.filter(name=wanted).first()
    if found is None:
        names = ", ".join(seen.values_list("name", flat=True)[:20])
        raise NotFound(f"There is no suite {wanted}.", hint=f"There are: {names or 'none'}.")
    return found


def _agent(person: User, organisation: Organisation, wanted: str) -> Agent:
    return find_agent(actor=person, organisation=organisation, wanted=wanted)


def _version(person: User, organisation: Organisation, options: Options) -> AgentVersion:
    agent = _agent(person, organisation, options["agent"])
    seen = AgentVersion.objects.visible_to(person).filter(agent=agent).select_related("agent")
    rows = seen.select_related("agent__current").order_by("-number")
    number = options["version"]
    found = rows.first() if number is None else rows.filter(number=number).first()
    if found is None:
        raise NotFound(f"{agent.name} has no version {number}.")
    return found


def _evaluation(person: User, uid: str) -> Evaluation:
    rows = Evaluation.objects.visible_to(person).select_related("suite")
    found = rows.filter(uid=uid).first()
    if found is None:
        raise NotFound("There is no such evaluation.")
    return found


def _print(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")
