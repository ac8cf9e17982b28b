"""`manage.py agent receipt …`: receipts made, checked and redacted. Checking needs no tables."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from conversations.models import Conversation
from harness.errors import Conflict, Invalid, NotFound
from receipts.actions.receipts import make_receipt, without_words
from receipts.signing import current_key
from receipts.verifying import Refused, main
from terminal.local import find_person
from terminal.talk import Ending

Options = dict[str, Any]


def add_commands(parser: ArgumentParser, common: ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="receipt", required=True, metavar="COMMAND")

    def command(name: str, help_text: str, *arguments: str) -> ArgumentParser:
        made: ArgumentParser = commands.add_parser(name, help=help_text, parents=[common])
        for argument in arguments:
            made.add_argument(argument)
        return made

    made = command("make", "print the receipt of a conversation", "conversation")
    made.add_argument("--without-words", action="store_true", help="take out what was said")
    command("key", "print the public key with which receipts are checked")
    made = command("verify", "check a receipt with a public key", "file", "key")
    made.add_argument("--files", default="", help="a folder of files that it names")
    command("redact", "print a receipt without what was said", "file")


def carry_out(options: Options) -> Ending:
    """Raises `Declined` as the actions do."""
    if options["url"]:
        raise Invalid(
            "Receipts are made on the machine that signs them.",
            field="url",
            hint="Run the command there, or download the receipt from the conversation's page.",
        )
    match options["receipt"]:
        case "verify":
            given = [options["file"], options["key"], *filter(None, [options["files"]])]
            return Ending.REFUSED if main(given) else Ending.DONE
        case "redact":
            try:
                sys.stdout.write(without_words(Path(options["file"]).read_bytes()).decode("ascii"))
            except Refused as problem:
                raise Conflict(f"{options['file']}: {problem}.") from None
            except OSError as problem:
                raise Invalid(f"{options['file']}: {problem.strerror}", field="file") from None
        case "key":
            sys.stdout.write(current_key().public_pem)
        case _:
            person = find_person(options["user"])
            rows = Conversation.objects.visible_to(person).named(options["conversation"])
            found = rows.first()
            if found is None:
                raise NotFound("There is no such conversation.")
            receipt = make_receipt(
                actor=person, conversation=found, words=not options["without_words"]
            )
            sys.stdout.write(receipt.decode("ascii"))
    return Ending.DONE
