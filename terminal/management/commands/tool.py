"""`manage.py tool NAME [INPUT]`: call a tool that needs no model, for example the calculator."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from conversations.actions.direct import direct_tools, use_tool
from conversations.models import Conversation
from harness.content import text_of
from harness.errors import Declined
from reading.foreignjson import Unreadable, read_json
from terminal.local import find_person


class Command(BaseCommand):
    help = "Call a tool that needs no model; without a name, list those there are."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", default="", help="the tool")
        parser.add_argument(
            "input",
            nargs="?",
            default="{}",
            help="its input as JSON, or, for a tool with one text, that text",
        )
        parser.add_argument("--user", default="", help="for whom: name or e-mail")
        parser.add_argument("--conversation", default="", help="the id of one with a workspace")

    def handle(self, *args: Any, **options: Any) -> None:
        if not options["name"]:
            for tool in direct_tools():
                self.stdout.write(f"{tool.name}: {tool.description}")
            return
        try:
            person = find_person(options["user"])
            conversation = None
            if options["conversation"]:
                found = Conversation.objects.visible_to(person).named(options["conversation"])
                conversation = found.first()
                if conversation is None:
                    raise CommandError("There is no such conversation.")
            outcome = use_tool(
                actor=person,
                name=options["name"],
                arguments=_input_of(options["name"], options["input"]),
                conversation=conversation,
            )
        except Declined as problem:
            raise CommandError(problem.words) from problem
        if outcome.is_error:
            raise CommandError(text_of(outcome.content))
        self.stdout.write(text_of(outcome.content))


def _input_of(name: str, given: str) -> dict[str, Any]:
    tool = next((tool for tool in direct_tools() if tool.name == name), None)
    required = list(tool.input_schema.get("required", ())) if tool is not None else []
    if not given.lstrip().startswith("{") and len(required) == 1:
        return {required[0]: given}
    try:
        value = read_json(given)
    except Unreadable as problem:
        raise CommandError(f"The input is not JSON: {problem}.") from problem
    if not isinstance(value, dict):
        raise CommandError("The input must be one JSON object.")
    return value
