"""`manage.py agent prompt …source…`: places elsewhere whose prompts are copied here, from a terminal.

What may be done is said by the actions; programs elsewhere use `/api/prompts/sources`.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from accounts.models import Organisation, User
from agents.versiondiff import lines_between
from harness.agentconfig import USUAL_LABEL
from harness.errors import Declined, NotFound
from prompts.actions.sources import (
    add_source,
    allow_pulled,
    ask_source,
    change_source,
    remove_source,
)
from prompts.models import PromptSource
from prompts.standing import Standing, standing_at, standings
from reading.digits import number_of
from terminal.givenfiles import text_at
from terminal.screen import printable

Options = dict[str, Any]
Act = Callable[[User, Organisation, Options], None]
REASON = "why agents whose suites are not green are given it all the same"
SIGNS = {"added": "+", "removed": "-", "gap": "…"}


def add_commands(command: Callable[..., ArgumentParser]) -> None:
    """The words behind `agent prompt` that are about sources."""
    command("sources", "the places elsewhere whose prompts are copied here")
    made = command("source", "how the labels of a source stand", "source")
    made.add_argument("--differs", action="store_true", help="what differs from the text in use")
    made = command("add-source", "have prompts copied from a place elsewhere")
    made.add_argument("kind", choices=PromptSource.Kind.values)
    made.add_argument("address")
    made.add_argument(
        "--key-file", default="", help="what it is asked with; - reads standard input"
    )
    made.add_argument("--folder", default="", help="of a repository")
    made.add_argument("--commit", default="", help="of a repository, all 40 digits")
    made.add_argument(
        "--follow",
        action="append",
        default=[],
        metavar="LABEL[=HERE]",
        help="a label there, and what it is called here; production, if none is given",
    )
    made.add_argument(
        "--labels-follow", choices=["yes", "no"], default="no", help="without a person's word"
    )
    made = command("change-source", "change its rule, or the commit that is read", "source")
    made.add_argument("--labels-follow", choices=["yes", "no"], default="")
    made.add_argument("--commit", default="")
    command("ask-source", "ask it what it has, now", "source")
    made = command(
        "allow",
        "have a label point to what was fetched",
        "source",
        "prompt_name",
        "label",
        "version",
    )
    made.add_argument("--reason", default="", help=REASON)
    command("remove-source", "take it away; what was fetched stays", "source")


def _all(person: User, organisation: Organisation, options: Options) -> None:
    for each in _rows(person, organisation):
        if options["json"]:
            _print(json.dumps(_facts(each), ensure_ascii=False))
        else:
            away = f"  away since {each.away_since:%Y-%m-%d %H:%M}" if each.away_since else ""
            _print(f"{each.uid}  {each.kind}  {each.address} {each.folder}".rstrip() + away)


def _one(person: User, organisation: Organisation, options: Options) -> None:
    source = _found(person, organisation, options)
    for standing in standings(source):
        _print(_line(standing))
        if options["differs"] and not standing.follows:
            before = standing.here.version.text if standing.here else ""
            for line in lines_between(before, standing.row.version.text):
                _print(f"  {SIGNS.get(line.kind, ' ')} {line.text}".rstrip())
    for remark in source.remarks:
        _print(f"not taken: {remark}")


def _add(person: User, organisation: Organisation, options: Options) -> None:
    pairs = [each.partition("=") for each in options["follow"] or [USUAL_LABEL]]
    key = options["key_file"]
    secret = sys.stdin.read() if key == "-" else text_at(key) if key else ""
    made = add_source(
        actor=person,
        organisation=organisation,
        kind=options["kind"],
        address=options["address"],
        secret=secret.strip(),
        folder=options["folder"],
        commit=options["commit"],
        labels={there: here or there for there, _sign, here in pairs},
        moves_labels=options["labels_follow"] == "yes",
    )
    _print(f"{made.uid}  {made.kind}  {made.address}")


def _change(person: User, organisation: Organisation, options: Options) -> None:
    given = options["labels_follow"]
    change_source(
        actor=person,
        source=_found(person, organisation, options),
        moves_labels=given == "yes" if given else None,
        commit=options["commit"],
    )


def _ask(person: User, organisation: Organisation, options: Options) -> None:
    asked = ask_source(actor=person, source=_found(person, organisation, options))
    if asked.problem:
        raise Declined(asked.problem, hint="What was fetched before goes on to be used.")
    for standing in standings(asked):
        _print(_line(standing))


def _allow(person: User, organisation: Organisation, options: Options) -> None:
    source = _found(person, organisation, options)
    found = standing_at(source, options["prompt_name"], options["label"])
    number = number_of(options["version"]) or 0
    reason = options["reason"]
    moved = allow_pulled(actor=person, pulled=found.row, number=number, reason=reason)
    _print(f"{moved.name} is version {moved.version.number}")


def _remove(person: User, organisation: Organisation, options: Options) -> None:
    remove_source(actor=person, source=_found(person, organisation, options))


ACTS: dict[str, Act] = {
    "sources": _all,
    "source": _one,
    "add-source": _add,
    "change-source": _change,
    "ask-source": _ask,
    "allow": _allow,
    "remove-source": _remove,
}


def _rows(person: User, organisation: Organisation) -> Any:
    rows = PromptSource.objects.visible_to(person).filter(organisation=organisation)
    return rows.select_related("organisation", "created_by")


def _found(person: User, organisation: Organisation, options: Options) -> PromptSource:
    found = _rows(person, organisation).filter(uid=options["source"]).first()
    if not isinstance(found, PromptSource):
        raise NotFound("There is no such source.", hint="`agent prompt sources` lists them.")
    return found


def _line(standing: Standing) -> str:
    row, here = standing.row, standing.here
    if here is None:
        stands = "nowhere here"
    else:
        stands = "in use" if standing.follows else f"version {here.version.number} here"
    waits = ", waits" if row.version.waits else ""
    held = f", held by {', '.join(standing.held_by)}" if standing.held_by else ""
    return f"{row.prompt.name} {row.label}: version {row.version.number}, {stands}{waits}{held}"


def _facts(source: PromptSource) -> dict[str, Any]:
    return {
        "id": source.uid,
        "kind": source.kind,
        "address": source.address,
        "folder": source.folder,
        "commit": source.commit,
        "labels": source.labels,
        "moves_labels": source.moves_labels,
        "away": source.away_since is not None,
        "problem": source.problem,
    }


def _print(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")
