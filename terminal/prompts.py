"""`manage.py agent prompt …`: named prompts from a terminal or a script, with this machine's tables.

What may be done is said by the actions; programs elsewhere use `/api/prompts`.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from accounts.models import Organisation, User
from conversations.models import Conversation
from harness.errors import Invalid, NotFound
from prompts.access import find_prompt
from prompts.actions.prompts import (
    add_version,
    create_prompt,
    import_prompt,
    move_label,
    spec_of,
)
from prompts.choosing import LATEST, version_named
from prompts.files import read_prompt, written_prompt
from prompts.models import Prompt
from prompts.previewing import preview
from prompts.spec import read_variables
from terminal import promptsources
from terminal.givenfiles import text_at
from terminal.local import find_organisation, find_person
from terminal.screen import printable
from terminal.talk import Ending

Options = dict[str, Any]
REASON = promptsources.REASON


def add_commands(parser: ArgumentParser, common: ArgumentParser) -> None:
    """The words behind `agent prompt`, each with the options that all commands have."""
    commands = parser.add_subparsers(dest="prompt", required=True, metavar="COMMAND")

    def command(name: str, help_text: str, *arguments: str) -> ArgumentParser:
        made: ArgumentParser = commands.add_parser(name, help=help_text, parents=[common])
        for argument in arguments:
            made.add_argument(argument)
        return made

    command("list", "the prompts that agents may name, with their labels")
    made = command("show", "print a version's text", "name")
    made.add_argument("--version", default=LATEST, help="number, label, or latest")
    made.add_argument("--conversation", default="", help="as it would say there")
    made = command("add", "add a file's text as a version; the prompt is made if need be", "name")
    made.add_argument("file", help="a text file; - reads standard input")
    made.add_argument("--variable", action="append", default=[], metavar="NAME[=DEFAULT]")
    made.add_argument("--note", default="", help="what changes")
    made.add_argument("--label", default="", help="move this label to it")
    made.add_argument("--reason", default="", help=REASON)
    made = command("label", "move a label to a version", "name", "label", "version")
    made.add_argument("--reason", default="", help=REASON)
    command("export", "print a prompt with all versions that do not wait as YAML", "name")
    made = command("import", "add what a file says", "file")
    made.add_argument("--reason", default="", help=REASON)
    promptsources.add_commands(command)


def carry_out(options: Options) -> Ending:
    """Raises `Declined` as the actions do."""
    if options["url"]:
        raise Invalid(
            "Prompts are looked after from the machine that holds them.",
            field="url",
            hint="Run the command there, or use /api/prompts.",
        )
    person = find_person(options["user"])
    act: Callable[[User, Organisation, Options], None] = {
        "list": _list,
        "show": _show,
        "add": _add,
        "label": _label,
        "export": _export,
        "import": _import,
        **promptsources.ACTS,
    }[options["prompt"]]
    act(person, find_organisation(person, options["organisation"]), options)
    return Ending.DONE


def _list(person: User, organisation: Organisation, options: Options) -> None:
    rows = Prompt.objects.visible_to(person).usable_in(organisation)
    for prompt in rows.prefetch_related("labels__version"):
        labels = {label.name: label.version.number for label in prompt.labels.all()}
        if options["json"]:
            row = {"name": prompt.name, "description": prompt.description, "labels": labels}
            _print(json.dumps(row, ensure_ascii=False))
        else:
            shown = " ".join(f"{name}={number}" for name, number in labels.items())
            _print(f"{prompt.name}  {shown}  {prompt.description}".rstrip())


def _show(person: User, organisation: Organisation, options: Options) -> None:
    version = version_named(find_prompt(person, organisation, options["name"]), options["version"])
    conversation = None
    if options["conversation"]:
        rows = Conversation.objects.visible_to(person).named(options["conversation"])
        conversation = rows.first()
        if conversation is None:
            raise NotFound("There is no such conversation.")
    text = version.text if conversation is None else preview(version, {}, conversation).text
    for line in text.split("\n"):
        _print(line)


def _add(person: User, organisation: Organisation, options: Options) -> None:
    given = {
        "text": _read(options["file"]),
        "variables": read_variables("\n".join(options["variable"])),
        "note": options["note"],
        "label": options["label"],
        "reason": options["reason"],
    }
    name = options["name"]
    known = Prompt.objects.visible_to(person).filter(organisation=organisation, name=name).first()
    if known is None:
        known = create_prompt(actor=person, organisation=organisation, name=name, **given)
        number = 1
    else:
        number = add_version(actor=person, prompt=known, **given).number
    _print(f"{known.uid}  {known.name}  version {number}")


def _label(person: User, organisation: Organisation, options: Options) -> None:
    moved = move_label(
        actor=person,
        prompt=find_prompt(person, organisation, options["name"]),
        label=options["label"],
        version=options["version"],
        reason=options["reason"],
    )
    _print(f"{moved.name} is version {moved.version.number}")


def _export(person: User, organisation: Organisation, options: Options) -> None:
    sys.stdout.write(written_prompt(spec_of(find_prompt(person, organisation, options["name"]))))


def _import(person: User, organisation: Organisation, options: Options) -> None:
    spec = read_prompt(_read(options["file"]))
    prompt, added = import_prompt(
        actor=person, organisation=organisation, spec=spec, reason=options["reason"]
    )
    _print(f"{prompt.uid}  {prompt.name}  {added} new versions")


def _read(name: str) -> str:
    return sys.stdin.read() if name == "-" else text_at(name)


def _print(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")
