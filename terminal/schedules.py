"""`manage.py agent schedule …`: a person's schedules from a terminal, with this machine's tables.

What may be done is said by the actions, what a command prints by the functions below; programs elsewhere use
`/v1/deployments`.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from accounts.models import Organisation, User
from conversations.actions.conversations import find_agent, find_environment
from conversations.actions.outcomes import checks_in
from harness.content import Text
from harness.errors import Invalid, NotFound
from harness.events import UserDefineOutcome, UserMessage
from harness.grading import ITERATIONS, MOST_ITERATIONS
from reading.arguments import whole_number
from schedules.actions.orders import create_order, pause_order, pin_order, resume_order
from schedules.actions.runs import run_now
from schedules.drafts import MOST_RESULT_FILES, Draft
from schedules.models import OrderRun, StandingOrder
from schedules.phrases import Reading, read_phrase
from schedules.preflight import Preflight, preflight_of, preview
from schedules.times import read_cron
from terminal.local import find_organisation, find_person
from terminal.screen import printable
from terminal.talk import Ending

Options = dict[str, Any]
SHOWN_RUNS = 20


def add_commands(parser: ArgumentParser, common: ArgumentParser) -> None:
    """The words behind `agent schedule`, each with the options that all commands have."""
    commands = parser.add_subparsers(dest="schedule", required=True, metavar="COMMAND")

    def command(name: str, help_text: str, *, of_one: bool = True) -> ArgumentParser:
        made: ArgumentParser = commands.add_parser(name, help=help_text, parents=[common])
        if of_one:
            made.add_argument("name", help="the schedule's id, or its name")
        return made

    command("list", "list them, with what is due next", of_one=False)
    command("show", "print one with its last runs")
    made = command("add", "make one; says what it means, and saves it with --yes", of_one=False)
    made.add_argument("name", help="what it is called")
    made.add_argument("text", help="what it is to do; - reads it from standard input")
    made.add_argument("--when", default="", help="in words: “every weekday at 8:30”")
    made.add_argument("--cron", default="", help="or as a cron expression")
    made.add_argument("--timezone", default="", help="an IANA name; else the site's")
    made.add_argument("--agent", required=True, help="name or id")
    made.add_argument("--environment", required=True, help="name or id")
    made.add_argument(
        "--criteria", default="", help="what each run is judged by, one a line with “- ” before it"
    )
    made.add_argument(
        "--judged",
        type=whole_number(1, MOST_ITERATIONS),
        default=ITERATIONS,
        help="how often it is judged at most",
    )
    made.add_argument(
        "--check",
        action="append",
        default=[],
        help="a command that checks it: “make test”, or “2: make test” for the second criterion",
    )
    made.add_argument("--mail", action="store_true", help="mail you how each run ended")
    made.add_argument(
        "--files",
        type=whole_number(0, MOST_RESULT_FILES),
        default=0,
        help="keep the answers of the last so many runs as files",
    )
    made.add_argument("--mail-from", default="", help="whose mails begin it, with commas between")
    made.add_argument("--yes", action="store_true", help="save it")
    command("run", "have it begin now")
    command("pause", "begin nothing of it until it is resumed")
    command("resume", "go on with what is due from now on")
    command("pin", "save it again: it goes on with the model, skills and words that there are now")
    command("check", "say what a run may do, where it would wait, and what it may cost")


def carry_out(options: Options) -> Ending:
    """Raises `Declined` as the actions do."""
    if options["url"]:
        raise Invalid(
            "Schedules are looked after on the machine that begins them.",
            field="url",
            hint="Programs elsewhere use /v1/deployments.",
        )
    person = find_person(options["user"])
    act: Callable[[User, Organisation, Options], Ending] = {
        "list": _list,
        "show": _show,
        "add": _add,
        "run": _run,
        "pause": _pause,
        "resume": _resume,
        "pin": _pin,
        "check": _check,
    }[options["schedule"]]
    return act(person, find_organisation(person, options["organisation"]), options)


def _list(person: User, organisation: Organisation, options: Options) -> Ending:
    mine = StandingOrder.objects.visible_to(person).filter(organisation=organisation)
    for order in mine.filter(archived_at=None).with_what_a_page_shows():
        _say(options, _row(order), f"{order.uid}  {_when(order):<22}  {order.name}")
    return Ending.DONE


def _show(person: User, organisation: Organisation, options: Options) -> Ending:
    order = _find(person, organisation, options["name"])
    _say(options, _row(order), f"{order.name}  {order.uid}  {_when(order)}")
    if order.is_paused:
        _say(options, None, f"paused: {order.get_pause_display()} {order.pause_words}")
    if order.mail_address:
        _say(options, None, f"mails to: {order.mail_address}")
    runs = order.runs.prefetch_related("deliveries__user", "deliveries__file")
    for run in runs.order_by("-pk")[:SHOWN_RUNS]:
        words = run.get_skip_display() or run.words
        _say(
            options,
            _run_row(run),
            f"{run.created_at:%Y-%m-%d %H:%M}  {run.state:<9}  {run.session_uid}  {words}",
        )
        for sent in run.deliveries.all():
            to = sent.file.filename if sent.file else str(sent.user)
            _say(options, None, f"    {sent.way} {to}: {sent.state} {sent.why}".rstrip())
    return Ending.DONE


def _outcome(text: str, options: Options) -> UserDefineOutcome | None:
    if not options["criteria"]:
        if options["check"]:
            raise Invalid(
                "A check belongs to criteria.", field="check", hint="Name them with --criteria."
            )
        return None
    return UserDefineOutcome(
        outcome_id="",
        description=text,
        rubric=options["criteria"],
        max_iterations=options["judged"],
        checks=checks_in("\n".join(options["check"])),
    )


def _add(person: User, organisation: Organisation, options: Options) -> Ending:
    zone = options["timezone"] or str(timezone.get_current_timezone())
    read_cron(options["cron"] or "0 0 * * *", zone)
    meant = Reading(cron=options["cron"])
    if options["when"]:
        meant = read_phrase(options["when"], zone=zone, now=timezone.now())
    text = sys.stdin.read() if options["text"] == "-" else options["text"]
    outcome = _outcome(text, options)
    draft = Draft(
        name=options["name"],
        agent=find_agent(actor=person, organisation=organisation, wanted=options["agent"]),
        environment=find_environment(
            actor=person, organisation=organisation, wanted=options["environment"]
        ),
        messages=() if outcome is not None else (UserMessage(content=(Text(text=text),)),),
        outcome=outcome,
        cron=meant.cron,
        timezone=zone,
        dates=(meant.date,) if meant.date else (),
        mails_owner=options["mail"],
        result_files=options["files"],
        mail_from=tuple(options["mail_from"].split(",")) if options["mail_from"] else (),
    )
    if not options["yes"]:
        _tell(options, preview(draft, actor=person, organisation=organisation), meant.cron)
        _say(options, None, "Nothing is saved. Say --yes to save it.")
        return Ending.REFUSED
    order = create_order(actor=person, organisation=organisation, draft=draft)
    _say(options, _row(order), f"{order.uid}  {_when(order)}  {order.name}")
    return Ending.DONE


def _run(person: User, organisation: Organisation, options: Options) -> Ending:
    run = run_now(actor=person, order=_find(person, organisation, options["name"]))
    _say(options, _run_row(run), f"{run.uid}  {run.session_uid or run.words}")
    return Ending.DONE if run.began else Ending.REFUSED


def _pause(person: User, organisation: Organisation, options: Options) -> Ending:
    order = pause_order(actor=person, order=_find(person, organisation, options["name"]))
    _say(options, _row(order), f"{order.name} is paused.")
    return Ending.DONE


def _resume(person: User, organisation: Organisation, options: Options) -> Ending:
    order = resume_order(actor=person, order=_find(person, organisation, options["name"]))
    _say(options, _row(order), f"{order.name}: next {_when(order)}")
    return Ending.DONE


def _pin(person: User, organisation: Organisation, options: Options) -> Ending:
    order = pin_order(actor=person, order=_find(person, organisation, options["name"]))
    check = preflight_of(order)
    on = "goes on with what is there now"
    if order.paused_at is not None:
        on = "is paused; once it is resumed, it " + on
    _say(options, _row(order), check.problem or f"{order.name}: it {on}")
    return Ending.REFUSED if check.problem else Ending.DONE


def _check(person: User, organisation: Organisation, options: Options) -> Ending:
    order = _find(person, organisation, options["name"])
    check = preflight_of(order)
    _tell(options, check, order.cron)
    return Ending.REFUSED if check.problem else Ending.DONE


# --- what is printed ------------------------------------------------------------------------------


def _tell(options: Options, check: Preflight, cron: str) -> None:
    row = {
        "problem": check.problem,
        "cron": cron,
        "upcoming": [at.isoformat() for at in check.upcoming],
        "model": check.model,
        "version": check.version,
        "waits": {tool.name: list(tool.asked) for tool in check.stops},
        "hosts": list(check.hosts),
        "skills": list(check.skills),
        "vaults": list(check.vaults),
        "memories": list(check.memories),
        "instructed_by": list(check.instructed_by),
        "refused_checks": dict(check.refused_checks),
        "run_cost": check.run_cost_text,
        "month_cost": check.month_cost_text,
        "budgets": {each.standing.name: each.words for each in check.budgets},
    }
    lines = [f"{name}: {value}" for name, value in row.items() if value]
    _say(options, row, "\n".join(lines))


def _find(person: User, organisation: Organisation, wanted: str) -> StandingOrder:
    """By id, or by a name that one alone has."""
    mine = StandingOrder.objects.visible_to(person).filter(organisation=organisation)
    rows = mine.with_what_a_page_shows()
    by_id = rows.filter(uid=wanted).first()
    if by_id is not None:
        return by_id
    named = list(rows.filter(name=wanted, archived_at=None)[:2])
    if not named:
        raise NotFound("There is no such schedule.", hint="`agent schedule list` shows yours.")
    if len(named) > 1:
        raise Invalid(
            "Several schedules have this name.",
            field="name",
            hint="Give the id; `agent schedule list` shows them.",
        )
    return named[0]


def _when(order: StandingOrder) -> str:
    if order.archived_at is not None:
        return "archived"
    if order.is_paused:
        return "paused"
    return f"{order.next_due_at:%Y-%m-%d %H:%M} UTC" if order.next_due_at else "–"


def _row(order: StandingOrder) -> dict[str, Any]:
    return {
        "id": order.uid,
        "name": order.name,
        "agent": order.agent_version.agent.name,
        "cron": order.cron,
        "timezone": order.timezone,
        "next_due_at": order.next_due_at.isoformat() if order.next_due_at else None,
        "mail_address": order.mail_address,
        "paused": order.pause if order.is_paused else None,
    }


def _run_row(run: OrderRun) -> dict[str, Any]:
    return {
        "id": run.uid,
        "state": run.state,
        "trigger": run.trigger,
        "due_at": run.due_at.isoformat() if run.due_at else None,
        "conversation": run.session_uid or None,
        "error": run.error or None,
        "words": run.words,
        "results": [
            {
                "way": sent.way,
                "to": sent.user.username,
                "state": sent.state,
                "why": sent.why or None,
            }
            for sent in run.deliveries.all()
        ],
    }


def _say(options: Options, row: dict[str, Any] | None, text: str) -> None:
    """The row where JSON is asked for, else the text; None: words for people alone."""
    if not options["json"]:
        sys.stdout.write(printable(text) + "\n")
    elif row is not None:
        sys.stdout.write(json.dumps(row, ensure_ascii=False) + "\n")
