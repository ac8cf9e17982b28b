"""`manage.py agent …`: what people do on the pages, from a terminal or a script.

Here with this installation's tables, or with --url (or AGENTSITE_URL) and a token on another machine.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from argparse import ArgumentParser
from functools import partial
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from accounts.models import Organisation, User
from harness.errors import Declined, Invalid
from mcpdoor.stdio import serve_stdio
from reading.arguments import whole_number
from terminal import brief, evals, memory, pipelines, prompts, receipts, registry, schedules, skills
from terminal.door import Door, Stored
from terminal.local import LocalDoor, find_organisation, find_person
from terminal.screen import Screen
from terminal.talk import Ending, Talk
from wire.givenjson import read_object

TOKEN = "AGENTSITE_TOKEN"  # noqa: S105 - a variable's name
URL = "AGENTSITE_URL"
ROOMS = {
    "skills": (skills, "look after the library of skills"),
    "eval": (evals, "try suites, compare evaluations, and let versions pass"),
    "pipeline": (pipelines, "have agents work on one question one after another"),
    "prompt": (prompts, "look after named prompts, their versions and labels"),
    "schedule": (schedules, "look after your schedules"),
    "brief": (brief, "say what happened for you, what waits and what it cost"),
    "registry": (registry, "have MCP servers from registries that the operator names"),
    "receipt": (receipts, "make and check signed receipts of conversations"),
}
"""Words with words of their own behind them."""


class Command(BaseCommand):
    help = "Work with agents from the command line."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        common = CommandParser(add_help=False)
        common.add_argument(
            "--url", default=os.environ.get(URL, ""), help="another machine's address"
        )
        common.add_argument(
            "--token-file", type=Path, help=f"a file with the token; else {TOKEN} is used"
        )
        common.add_argument("--user", default="", help="for whom, on this machine: name or e-mail")
        common.add_argument("--organisation", default="", help="in which one, on this machine")
        common.add_argument("--json", action="store_true", help="events as JSON, one a line")

        commands = parser.add_subparsers(dest="what", required=True, metavar="COMMAND")

        def command(name: str, help_text: str) -> ArgumentParser:
            made: ArgumentParser = commands.add_parser(name, help=help_text, parents=[common])
            return made

        for name, help_text in (
            ("ask", "put one question and wait for the answer"),
            ("chat", "talk until exit, quit or the end of input"),
        ):
            made = command(name, help_text)
            if name == "ask":
                made.add_argument("text", help="what to ask; - reads it from standard input")
            made.add_argument("--conversation", default="", help="go on in this one")
            made.add_argument("--agent", default="", help="name or id")
            made.add_argument("--environment", default="", help="name or id")
        made = command("conversations", "list the latest conversations")
        made.add_argument("--limit", type=whole_number(1, 1_000), default=20)
        made = command("events", "print a conversation's log")
        made.add_argument("conversation")
        made.add_argument(
            "--follow", action="store_true", help="go on with what comes, until Ctrl+C"
        )
        for name, help_text in (("approve", "allow a call that waits"), ("deny", "refuse one")):
            made = command(name, help_text)
            made.add_argument("conversation")
            made.add_argument("call")
            if name == "deny":
                made.add_argument("--reason", default="")
            else:
                made.add_argument(
                    "--read-to",
                    default="",
                    metavar="EVENT",
                    help="the last event that was read: a question from after it is not answered",
                )
                made.add_argument(
                    "--edit",
                    default="",
                    metavar="JSON|@FILE",
                    help="the arguments it shall run with in place of the agent's",
                )
        made = command("set-aside", "go on without a message or a result that is refused")
        made.add_argument("conversation")
        made.add_argument("event")
        for name, help_text in (
            ("edit", "say a message anew; the dialogue goes on from there"),
            ("regenerate", "have an answer done once more"),
            ("rewind", "go back to before a message, or to the end of an answer's turn"),
            ("switch", "go on with another branch"),
        ):
            made = command(name, help_text)
            made.add_argument("conversation")
            made.add_argument("event", help="its id; `events` has them")
            if name == "edit":
                made.add_argument("text", help="the message's new words")
            if name == "regenerate":
                made.add_argument("--model", default="", help="in place of the agent's own")
            made.add_argument(
                "--leave-files", action="store_true", help="leave the files as they are now"
            )
        for name, (room, help_text) in ROOMS.items():
            room.add_commands(command(name, help_text), common)
        memory.add_to(command)
        command("mcp", "serve MCP clients on standard input and output, on this machine")
        made = command("fork", "begin a conversation with a copy of the dialogue up to a place")
        made.add_argument("conversation")
        made.add_argument("event", help="its id; `events` has them")
        for name, help_text in (
            ("show", "print a conversation"),
            ("wake", "have somebody look whether it owes anything"),
            ("stop", "stop what it is doing"),
            ("export", "write a conversation out"),
        ):
            made = command(name, help_text)
            made.add_argument("conversation")
            if name == "export":
                made.add_argument("--format", choices=["markdown", "json"], default="markdown")

    def handle(self, *args: Any, **options: Any) -> None:
        # Django keeps SIGINT's default; a shell that put us into the background may have not.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        door: Door | None = None
        try:
            if options["what"] == memory.NAME:
                memory.run(options, partial(_who, options), Screen(as_json=options["json"]))
                return
            if options["what"] in ROOMS:
                room, _help = ROOMS[options["what"]]
                ending = room.carry_out(options)
            elif options["what"] == "mcp":
                _serve_mcp(options)
                ending = Ending.DONE
            else:
                door = _door(options)
                ending = _do(door, options)
        except Declined as declined:
            field = (
                f"{declined.field}: " if isinstance(declined, Invalid) and declined.field else ""
            )
            if options["json"]:
                error = {"code": declined.code, "message": str(declined.message)}
                print(json.dumps({"type": "error", "error": error}))
            raise CommandError(f"{field}{declined.words}", returncode=Ending.REFUSED) from None
        except BrokenPipeError:
            # Whoever read our output has seen enough.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ending = Ending.DONE
        except KeyboardInterrupt:
            ending = Ending.STOPPED
        finally:
            if door is not None:
                door.close()
        if ending is not Ending.DONE:
            sys.exit(int(ending))


def _serve_mcp(options: dict[str, Any]) -> None:
    if options["url"]:
        raise Invalid(
            "A server elsewhere speaks MCP by itself.",
            field="url",
            hint="Give the client the address /mcp of that server, and a token.",
        )
    person = find_person(options["user"])
    serve_stdio(person, find_organisation(person, options["organisation"]))


def _who(options: dict[str, Any]) -> tuple[User, Organisation]:
    person = find_person(options["user"])
    return person, find_organisation(person, options["organisation"])


def _door(options: dict[str, Any]) -> Door:
    if not options["url"]:
        try:
            person = find_person(options["user"])
        except DatabaseError as problem:
            raise CommandError(
                f"This installation's tables cannot be used: {problem}. "
                "Run `manage.py prepare`, or name another machine with --url."
            ) from None
        return LocalDoor(person, find_organisation(person, options["organisation"]))
    # Heavy, and of no use on this machine's own tables.
    from terminal.remote import RemoteDoor  # noqa: PLC0415

    token = os.environ.get(TOKEN, "")
    if options["token_file"]:
        try:
            token = options["token_file"].read_text(encoding="utf-8").strip()
        except OSError as problem:
            raise Invalid(
                f"{problem.strerror}: {problem.filename}",
                field="token-file",
                hint="Name a file that holds the token and that you may read.",
            ) from None
    if not token:
        raise Invalid(
            "A token is needed.", field="token", hint=f"Set {TOKEN} or give --token-file."
        )
    return RemoteDoor(options["url"], token)


def _do(door: Door, options: dict[str, Any]) -> Ending:
    screen = Screen(as_json=options["json"])
    match options["what"]:
        case "ask":
            text = sys.stdin.read() if options["text"] == "-" else options["text"]
            return _talk(door, screen, options).say(text)
        case "chat":
            return _chat(_talk(door, screen, options))
        case "conversations":
            screen.summaries(door.conversations(options["limit"]))
        case "events":
            return _events(door, options["conversation"], follow=options["follow"])
        case "approve":
            edited = _edited(options["edit"])
            door.decide(
                options["conversation"],
                options["call"],
                allow=True,
                edited=edited,
                read_to=options["read_to"],
            )
        case "deny":
            reason = options["reason"]
            door.decide(options["conversation"], options["call"], allow=False, reason=reason)
        case "show":
            if options["json"]:
                screen.summaries([door.describe(options["conversation"])])
            else:
                for row in door.events(options["conversation"]):
                    screen.event(row)
        case "set-aside":
            door.set_aside(options["conversation"], options["event"])
        case "edit" | "regenerate" | "rewind" | "switch" as act:
            uid = options["conversation"]
            content, model = options.get("text") or "", options.get("model") or ""
            files = not options["leave_files"]
            door.branch(uid, act, options["event"], content=content, model=model, files=files)
            if act in {"edit", "regenerate"} and not options["url"]:
                Talk(door, screen, uid, None).finish()
        case "fork":
            screen.pieces([door.fork(options["conversation"], options["event"]) + "\n"])
        case "wake":
            door.wake(options["conversation"])
            if not options["url"]:
                Talk(door, screen, options["conversation"], None).finish()
        case "stop":
            door.stop(options["conversation"])
        case "export":
            screen.pieces(door.export(options["conversation"], options["format"]))
    return Ending.DONE


def _edited(given: str) -> dict[str, Any] | None:
    if not given:
        return None
    text: str | bytes = given
    if given.startswith("@"):
        try:
            text = Path(given[1:]).read_bytes()
        except OSError as problem:
            raise Invalid(f"{problem.strerror}: {problem.filename}", field="edit") from None
    return read_object(
        text, field="edit", hint='Give one JSON object, as in \'{"path": "a.txt"}\'.'
    )


def _talk(door: Door, screen: Screen, options: dict[str, Any]) -> Talk:
    uid = options["conversation"] or door.begin(
        agent=options["agent"], environment=options["environment"], title=""
    )
    screen.note(f"conversation {uid}")
    asked = sys.stdin.isatty() and sys.stderr.isatty() and not options["json"]
    return Talk(door, screen, uid, _prompt if asked else None)


def _chat(talk: Talk) -> Ending:
    while True:
        try:
            text = _prompt("> ") if sys.stdin.isatty() else _line()
        except (EOFError, KeyboardInterrupt):
            return Ending.DONE
        if text.strip() in {"exit", "quit"}:
            return Ending.DONE
        if text.strip():
            ending = talk.say(text)
            if ending is Ending.WAITS:
                return ending


def _events(door: Door, uid: str, *, follow: bool) -> Ending:
    lines = Screen(as_json=True)
    if not follow:
        for row in door.events(uid):
            lines.event(row)
        return Ending.DONE
    for item in door.follow(uid):
        if isinstance(item, Stored):
            lines.event(item.event)
    return Ending.DONE


def _prompt(words: str) -> str:
    print(words, end="", file=sys.stderr, flush=True)
    return _line()


def _line() -> str:
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")
