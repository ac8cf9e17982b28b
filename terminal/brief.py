"""`manage.py agent brief`: what happened for a person, from a terminal, with this machine's tables."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.utils import timezone

from brief.compiling import compile_brief
from brief.contents import Contents, Line
from brief.models import Brief
from brief.sending import LONGEST
from harness.errors import Invalid, NotFound
from reading.arguments import whole_number
from terminal.local import find_organisation, find_person
from terminal.screen import printable
from terminal.talk import Ending

Options = dict[str, Any]


def add_commands(parser: ArgumentParser, common: ArgumentParser) -> None:
    most = int(LONGEST.total_seconds() // 3600)
    parser.add_argument(
        "--hours", type=whole_number(1, most), default=24, help="how far back it tells"
    )
    parser.add_argument("--last", action="store_true", help="the last one that was made")


def carry_out(options: Options) -> Ending:
    """Raises `Declined` as the actions do."""
    if options["url"]:
        raise Invalid(
            "Briefs are read on the machine that makes them.",
            field="url",
            hint="Programs elsewhere use /api/briefs.",
        )
    person = find_person(options["user"])
    organisation = find_organisation(person, options["organisation"])
    if options["last"]:
        made = Brief.objects.visible_to(person).filter(organisation=organisation).first()
        if made is None:
            raise NotFound("No brief was made yet.", hint="Leave out --last.")
        contents, text, model = made.contents, made.text, made.model
    else:
        now = timezone.now()
        since = now - timedelta(hours=options["hours"])
        contents = compile_brief(person, organisation, since=since, until=now)
        text, model = "", ""
    if options["json"]:
        written = {"text": text, "written_by": model if text else None}
        told = {**contents.model_dump(mode="json"), **written}
        sys.stdout.write(json.dumps(told, ensure_ascii=False) + "\n")
    else:
        above = f"{text}\n(Written by {model} from what stands below.)\n" if text else ""
        sys.stdout.write(printable(above + _text(contents)) + "\n")
    return Ending.DONE


def _text(contents: Contents) -> str:
    parts = {
        "Waits for you": contents.waits,
        "Failed": contents.failed,
        "Ran": contents.ran,
        "Left out or paused": contents.skipped,
        "Changed": contents.changed,
        "Budgets": contents.budgets,
    }
    said = [
        "\n".join([title, *(f"  {_of(line)}" for line in lines)])
        for title, lines in parts.items()
        if lines
    ]
    spent = contents.spent
    said.append(f"Cost: {spent.cost_text} in {spent.calls} model calls")
    return "\n".join(said)


def _of(line: Line) -> str:
    wording = "newer version of its agent" if line.code == "newer_version" else line.wording
    many = f"({line.count})" if line.kind != "budget" and line.count > 1 else ""
    words = " ".join(line.words.split())
    facts = (line.name or "Untitled", wording, many, words, line.cost_text, line.path)
    return " · ".join(fact for fact in facts if fact)
