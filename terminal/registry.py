"""`manage.py agent registry …`: registries of MCP servers that the operator names, from a terminal.

What may be done is said by the actions; programs elsewhere use `/api/mcp-registry`.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from accounts.models import Organisation, User
from harness.errors import Invalid
from mcpservers.actions.registry import (
    add_registered,
    offered_ways,
    read_registered,
    search_registry,
)
from mcpservers.models import McpServer
from mcpservers.serverjson import LATEST, Question, ServerJson
from reading.arguments import whole_number
from terminal.givenfiles import text_at
from terminal.local import find_organisation, find_person
from terminal.screen import printable
from terminal.talk import Ending
from wire.givenjson import read_object

Options = dict[str, Any]
Act = Callable[[User, Organisation, Options], None]
SCOPES = ("person", "organisation", "deployment")


def add_commands(parser: ArgumentParser, common: ArgumentParser) -> None:
    """The words behind `agent registry`, each with the options that all commands have."""
    commands = parser.add_subparsers(dest="registry_act", required=True, metavar="COMMAND")

    def command(name: str, help_text: str) -> ArgumentParser:
        made: ArgumentParser = commands.add_parser(name, help=help_text, parents=[common])
        made.add_argument(
            "--registry", type=whole_number(0, 1_000), default=0, help="which of them, from 0 on"
        )
        return made

    made = command("search", "list servers by a part of their names, a page at a time")
    made.add_argument("text", nargs="?", default="")
    made.add_argument("--cursor", default="", help="of the page before")
    made = command("show", "print a server, and what each way to have it asks for")
    made.add_argument("name")
    made.add_argument("--version", default=LATEST)
    made = command("add", "add it as it was shown")
    made.add_argument("name")
    made.add_argument("version")
    made.add_argument("digest", help="as `show` prints it: what was looked at")
    made.add_argument("--way", type=whole_number(0, 1_000), default=0)
    made.add_argument(
        "--answers",
        default="",
        metavar="FILE",
        help="a JSON object of what it asks for, by the keys that `show` prints; - reads standard input",
    )
    made.add_argument("--called", default="", help="what it is to be called here")
    made.add_argument("--scope", choices=SCOPES, default=SCOPES[0], help="whose it becomes")


def carry_out(options: Options) -> Ending:
    """Raises `Declined` as the actions do."""
    if options["url"]:
        raise Invalid(
            "Registries are asked on the machine whose operator named them.",
            field="url",
            hint="Programs elsewhere use /api/mcp-registry.",
        )
    person = find_person(options["user"])
    organisation = find_organisation(person, options["organisation"])
    ACTS[options["registry_act"]](person, organisation, options)
    return Ending.DONE


def _search(person: User, organisation: Organisation, options: Options) -> None:
    found = search_registry(
        actor=person,
        organisation=organisation,
        number=options["registry"],
        text=options["text"],
        cursor=options["cursor"],
    )
    for each in found.servers:
        if options["json"]:
            _print_json(_facts(each))
        else:
            _print(f"{each.name} {each.version}  {each.description}".rstrip())
    if found.unreadable:
        sys.stderr.write(f"{found.unreadable} more cannot be read.\n")
    if found.cursor:
        sys.stderr.write(f"Further ones: --cursor {printable(found.cursor)}\n")


def _show(person: User, organisation: Organisation, options: Options) -> None:
    found = read_registered(
        actor=person,
        organisation=organisation,
        number=options["registry"],
        name=options["name"],
        version=options["version"],
    )
    ways = offered_ways(found)
    if options["json"]:
        told = [
            {
                "way": way.number,
                "what": way.what,
                "refusal": way.refusal,
                "hint": way.hint,
                "settled": dict(way.settled),
                "questions": [_asked(each) for each in way.questions],
            }
            for way in ways
        ]
        _print_json({**_facts(found), "digest": found.digest, "ways": told})
        return
    _print(f"{found.name} {found.version} {found.digest}")
    _print(found.description)
    for way in ways:
        _print(f"way {way.number}: {way.what}")
        if way.refusal:
            _print(f"  not here: {way.refusal} {way.hint}".rstrip())
            continue
        for name, value in way.settled:
            _print(f"  set: {name} {value}")
        for question in way.questions:
            asked = _asked(question)
            marks = [word for word in ("required", "secret") if asked[word]]
            _print(f"  {question.key}  {' '.join(marks)}  {asked['about']}".rstrip())


def _add(person: User, organisation: Organisation, options: Options) -> None:
    name = options["answers"]
    text = sys.stdin.read() if name == "-" else text_at(name) if name else "{}"
    answers = read_object(text, field="answers")
    if not all(isinstance(each, str) for each in answers.values()):
        raise Invalid(
            "An answer is a text.", field="answers", hint='Write such as {"url.host": "a.example"}.'
        )
    made = add_registered(
        actor=person,
        organisation=organisation,
        scope=McpServer.Scope(options["scope"]),
        number=options["registry"],
        name=options["name"],
        version=options["version"],
        digest=options["digest"],
        way=options["way"],
        answers=answers,
        called=options["called"],
    )
    _print(f"{made.uid}  {made.name}  {made.last_error}".rstrip())


ACTS: dict[str, Act] = {"search": _search, "show": _show, "add": _add}


def _facts(server: ServerJson) -> dict[str, Any]:
    return server.model_dump(include={"name", "title", "description", "version"})


def _asked(question: Question) -> dict[str, Any]:
    source = question.input
    return {
        "key": question.key,
        "about": source.description or question.label,
        "required": source.is_required,
        "secret": source.is_secret,
    }


def _print(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")


def _print_json(told: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
